# SPDX-License-Identifier: Apache-2.0
"""The scenario bench as a test: every scenario under the real oomrun, and the marks it must reach."""

import os
import statistics
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("OOMRETRY_BUILD", TESTS.parent / "build")).absolute()
sys.path.insert(0, str(TESTS / "bench"))
import ladder  # noqa: E402


@pytest.fixture(scope="module")
def results():
    if not (BUILD / "bin/oomrun").exists():
        pytest.fail(f"nothing is built in {BUILD}: run make")
    return ladder.bench(str(BUILD))


def named(results, key):
    return {r["name"]: r["path"] for r in results if r[key]}


def test_fixable_jobs_are_fixed(results):
    fixable = [r for r in results if r["expect"] == "fixed"]
    missed = {r["name"]: r["path"] for r in fixable if not r["fixed"]}
    assert len(missed) <= 0.05 * len(fixable), missed


def test_few_attempts(results):
    assert (
        statistics.median(r["attempts"] for r in results if r["expect"] == "fixed" and r["fixed"])
        <= 2
    )


@pytest.mark.parametrize("kind", ["identical", "illegal", "wrong"])
def test_no_senseless_retry(results, kind):
    assert named(results, kind) == {}


def test_what_is_no_memory_runs_once(results):
    assert {
        r["name"]: r["path"]
        for r in results
        if r["expect"] in ("plain", "ok") and r["attempts"] != 1
    } == {}


def test_stopping_has_a_reason(results):
    stopped = [r for r in results if r["expect"] in ("plain", "stop")]
    assert {r["name"]: r["bad"] for r in stopped if r["bad"]} == {}
