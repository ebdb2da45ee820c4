# SPDX-License-Identifier: Apache-2.0
"""What the owner of a job says about it: oomctl stop, hold, resume."""
import subprocess

import pytest

from conftest import wait_for
from kinds import is_over, story_of, write_job


def running(cluster, work, script):
    """A job whose trainer has run out and ends when it may."""
    path, memory = write_job(work, script, "agent away")
    job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", "--open-mode=append", path)
    wait_for(lambda: "CUDA out of memory" in job.output(), "the trainer to run out")
    return job


def may_end(work):
    (work / "go").write_text("")


def line_of(cluster, job):
    return next(line for line in cluster.oomctl("history").stdout.splitlines()
                if line.split()[0] == job.id)


@pytest.mark.parametrize("verb,state", [("stop", "stopped"), ("hold", "held")])
def test_no_more_retries_until_resumed(cluster, work, script, verb, state):
    """It ends as it would without oomretry. Resumed, it runs again under the same id, with the
    change that it would have had."""
    job = running(cluster, work, script)
    done = cluster.oomctl(verb, job.id)
    assert done.returncode == 0, done.stderr
    assert f"running ({verb})" in line_of(cluster, job)
    may_end(work)
    assert job.wait()["JobState"] == "FAILED"
    assert is_over(cluster, job)["lineage"]["state"] == state
    assert "its owner" in job.output()
    assert len(story_of(cluster, job)["attempts"]) == 1

    done = cluster.oomctl("resume", job.id)
    assert done.returncode == 0 and "started again" in done.stdout, done.stdout + done.stderr
    record = job.wait("COMPLETED")
    assert record["Restarts"] == "1"
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    assert story["lineage"]["state"] == "completed"
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "requeue"]
    again = cluster.oomctl(verb, job.id)
    assert again.returncode == 2 and "it is over" in again.stderr


def test_taken_back_before_it_matters(cluster, work, script):
    job = running(cluster, work, script)
    assert cluster.oomctl("stop", job.id).returncode == 0
    assert cluster.oomctl("resume", job.id).returncode == 0
    may_end(work)
    record = job.wait()
    assert record["JobState"] == "COMPLETED", job.output()
    assert record["Restarts"] == "0"


def test_only_the_owner(cluster, work, script):
    """Nobody else steers or reads it; administrators do."""
    job = running(cluster, work, script)
    for verb in "stop", "hold", "resume", "explain", "history":
        done = subprocess.run([cluster.prefix / "bin/oomctl", verb, job.id], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, user="games",
                              group="games", extra_groups=[],
                              env=cluster.environment(
                                  {"OOMRETRY_CONFIG": str(cluster.dir / "oomretry.conf")}))
        assert done.returncode == 2, (verb, done.stdout)
        assert "belongs to somebody else" in done.stderr, (verb, done.stderr)
    assert cluster.oomctl("stop", job.id, root=True).returncode == 0
    may_end(work)
    assert job.wait()["JobState"] == "FAILED"
