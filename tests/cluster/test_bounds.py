# SPDX-License-Identifier: Apache-2.0
"""Bounds of site and cluster: what they forbid is not done, and the reason is told."""
import json
import os

import pytest

import second
import training
from conftest import BUILD
from kinds import write_job


# Holds what it takes: a limit that is exceeded by little is noticed a moment later.
HOG = """#!/bin/bash
python3 -c 'x = bytearray(280 << 20); import time; time.sleep(2)' || exit 1
echo fits
"""


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of different memory; one retry a day for an account."""
    if os.geteuid() != 0:
        pytest.skip("a private Slurm needs root")
    if not (BUILD / "lib/slurm/spank_oomretry.so").exists():
        pytest.fail(f"nothing is built in {BUILD}: run make")
    with second.cluster("--memory", "700", "--memory", "300",
                        "--agent-conf", "attempts_per_account_day: 1") as one:
        yield one


def node(cluster, index):
    return cluster.record["nodes"][index]


def test_memory_that_only_another_node_has(cluster, work, script):
    """The partition has a node with enough, but this job asked for another one: it would wait for
    good. It is not queued again, and its history says why."""
    if not cluster.memory_limits:
        pytest.skip("no memory cgroup here")
    job = cluster.sbatch(work, "--oom-retry", "--mem=240", "-w", node(cluster, 1),
                         script(HOG))
    record = job.wait()
    assert record["JobState"] == "OUT_OF_MEMORY", job.output()
    assert record["Restarts"] == "0"
    told = cluster.oomctl("explain", job.id).stdout
    assert "the scheduler would not run the job like that" in told, told
    assert "Requested node configuration is not available" in told
    free = cluster.sbatch(work, "--oom-retry", "--mem=240", script(HOG))
    assert free.wait()["JobState"] == "COMPLETED", free.output()


def test_an_account_has_its_bound(cluster, work, script):
    """The second job of the account is not retried; one of another account is. GPU-hours are those
    of the allocation."""
    path, memory = write_job(work, script, "gpu")
    ends = {}
    for name, account in ("first", "llm"), ("second", "llm"), ("other", "vision"):
        # Another argument: another shape, so that each climbs its own ladder.
        job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", "-A", account,
                             "--gres=gpu:3", "--open-mode=append", path, name)
        ends[name] = job.wait()["JobState"], job.output()
    assert ends["first"][0] == ends["other"][0] == "COMPLETED", ends
    assert ends["second"][0] == "FAILED"
    assert "attempts_per_account_day" in ends["second"][1]
    budget = json.loads(cluster.oomctl("budget", "--json").stdout)
    assert [(row["account"], row["retries"]) for row in
            sorted(budget["accounts"], key=lambda row: row["account"])] == [("llm", 1), ("vision", 1)]
    story = training.history(cluster, job)
    assert [attempt["gpus"] for attempt in story["attempts"]] == [3, 3]
    shown = cluster.oomctl("budget").stdout
    assert [line.split()[:4] for line in shown.splitlines() if "vision" in line] == [["vision", "1", "of", "1"]]
