# SPDX-License-Identifier: Apache-2.0
"""The table "Kinds of jobs" of docs/restarts.md, row by row: the table is the test."""
import concurrent.futures
import os
import signal
import tempfile
from pathlib import Path

import pytest

import kinds
from conftest import OWNER, REPO, Job, wait_for

AT_ONCE = 6
COLUMNS = ("kind", "cause", "mode", "states", "ways", "starts", "dependents")


def table():
    rows, inside = [], False
    for line in (REPO / "docs/restarts.md").read_text().splitlines():
        inside = line.startswith("## Kinds of jobs") or (inside and not line.startswith("## "))
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if inside and line.startswith("|") and len(cells) == len(COLUMNS):
            rows.append(dict(zip(COLUMNS, cells)))
    return rows[2:]


def label(row):
    return f"{row['kind']}-{row['cause']}-{row['mode']}".replace(" ", "_")


@pytest.fixture(scope="module")
def outcomes(cluster):
    """All rows, several at once."""
    def play(row):
        work = Path(tempfile.mkdtemp(prefix="w", dir=cluster.dir.parent))
        os.chown(work, OWNER.pw_uid, OWNER.pw_gid)
        work.chmod(0o755)

        def script(text, name="job.sh"):
            (work / name).write_text(text)
            (work / name).chmod(0o755)
            return work / name
        try:
            return kinds.play(cluster, work, script, row["kind"], row["cause"], row["mode"])
        except AssertionError as failure:
            outputs = "".join(f"--- {path.name}\n{path.read_text(errors='replace')}"
                              for path in sorted(work.glob("*.out")))
            return f"{failure}\n{outputs}"
    rows = [row for row in table() if cluster.memory_limits or "host" not in row["cause"]]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(map(label, rows), pool.map(play, rows)))


@pytest.mark.parametrize("row", table(), ids=label)
def test_row(outcomes, row):
    if label(row) not in outcomes:
        pytest.skip("no memory cgroup here")
    expected = {key: row[key] for key in ("states", "ways", "starts", "dependents")}
    assert outcomes[label(row)] == expected


# --- what happens to the whole cluster at once ---------------------------------------------------


def restart_agent_after(cluster, ready):
    """Stops the agent for good, waits, and starts it again."""
    pid = cluster.record["daemons"]["oomagent"]["pid"]
    os.killpg(pid, signal.SIGKILL)
    wait_for(ready, "what happens without the agent")
    cluster.devcluster("restart", "oomagent")


@pytest.mark.parametrize("kind", ["plain", "afterok", "array", "no-requeue"])
def test_agent_down_then_up(cluster, work, script, kind):
    """The agent is killed while the job runs and comes back after the job has failed for want of a
    decision: the head's open attempts are found, and the job is queued or submitted again."""
    job, after = kinds.submit(cluster, work, script, kind, "slow gpu", "auto")
    target = kinds.watched(job, kind)
    wait_for(lambda: any(run[1] != "0" for run in kinds.runs(work)), "the first start")
    restart_agent_after(cluster, lambda: target.state == "FAILED")
    story = wait_for(lambda: kinds.is_over(cluster, target), "the lineage to end", pause_s=0.4)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert Job(cluster, story["lineage"]["jobs"][-1], "").state == "COMPLETED"
    assert len(story["attempts"]) == 2
    if after:
        assert kinds.dependent_outcome(cluster, after) == "run"


def below(pid):
    """A process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += below(int(child))
    return found


def kill_step(job):
    """slurmstepd of the batch step and everything below it, as when a node's memory is cleared."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if words.startswith(f"slurmstepd: [{job.id}.batch]".encode()):
            for pid in below(int(entry.name)):
                os.kill(pid, signal.SIGKILL)
            return
    raise AssertionError(f"no slurmstepd of job {job.id}")


@pytest.mark.parametrize("kind", ["plain", "kill-on-invalid-dep"])
def test_slurmstepd_killed(cluster, work, script, kind):
    """Nobody reports the end of the step, and Slurm goes on calling the job RUNNING; the node's
    agent sees that its supervisor is gone."""
    job, after = kinds.submit(cluster, work, script, kind, "slow gpu", "auto")
    wait_for(lambda: "OutOfMemoryError" in job.output(), "the trainer to fail")
    kill_step(job)
    assert job.state == "RUNNING"
    story = wait_for(lambda: kinds.is_over(cluster, job), "the lineage to end", pause_s=0.4)
    assert story["lineage"]["state"] == "completed", story["lineage"]
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "requeue"]
    assert job.record()["Restarts"] == "1"
    assert len(kinds.runs(work)) == 2
    if after:
        assert kinds.dependent_outcome(cluster, after) == "run"
