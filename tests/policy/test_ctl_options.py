# SPDX-License-Identifier: Apache-2.0
"""Options that all verbs of oomctl share are read in one place, and mean the same everywhere."""
import json
import subprocess

import pytest

from conftest import BUILD

ASKING = [["history"], ["show", "7"], ["explain", "7"], ["stop", "7"], ["hold", "7"],
          ["resume", "7"], ["budget"], ["stats"], ["policy", "list"], ["policy", "log", "relax"]]


def oomctl(*words):
    return subprocess.run([str(BUILD / "bin/oomctl"), *map(str, words)], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_a_head_that_is_named_is_the_one_that_is_asked(words, tmp_path):
    nobody = tmp_path / "head.sock"
    done = oomctl(*words, "--head", nobody)
    assert done.returncode == 2
    assert f"no answer from the head at {nobody}" in done.stderr
    done = oomctl(*words, "--head", nobody, "--db", tmp_path / "db")
    assert done.returncode == 2 and "contradict" in done.stderr


def test_what_is_not_there_is_no_usage_error(tmp_path):
    assert oomctl("show", "7", "--db", tmp_path / "db").returncode == 1
    assert oomctl("history", "7", "--db", tmp_path / "db").returncode == 1
    assert json.loads(oomctl("stats", "--json", "--db", tmp_path / "db").stdout)["lineages"] == []


@pytest.mark.parametrize("words", [["show"], ["show", "1", "2"], ["stop"], ["history", "--nope"],
                                   ["policy", "set", "relax"], ["policy", "list", "x"],
                                   ["diagnose", "--signal", "x"], ["plan"], ["rewrite"],
                                   ["settle"], ["doctor", "--nope"]], ids=" ".join)
def test_usage_errors_name_the_verb_and_exit_2(words):
    done = oomctl(*words)
    assert done.returncode == 2
    verb = " ".join(words[:2] if words[0] == "policy" else words[:1])
    assert f"oomctl {verb}" in done.stderr
