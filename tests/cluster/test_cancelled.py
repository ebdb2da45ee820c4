# SPDX-License-Identifier: Apache-2.0
"""Who cancels a job does not get it back: not when its processes ignore the signal until they are
killed, and not when the next attempt was decided already."""
import os
import signal
import time

import pytest

import kinds
from conftest import wait_for
from training import history


def assert_stays_cancelled(cluster, work, job):
    assert job.wait()["JobState"] == "CANCELLED", job.output()
    time.sleep(4)
    record = job.record()
    assert (record["JobState"], record["Restarts"]) == ("CANCELLED", "0"), job.output()
    assert len(kinds.runs(work)) == 1
    assert cluster.run("squeue", "-h", "-n", work.name).stdout == ""


def test_ranks_that_hang_until_they_are_killed(cluster, work, script):
    """Out of memory, the others wait, their owner sees it and cancels: the supervisor is killed
    together with what does not heed SIGTERM."""
    path, memory = kinds.write_job(work, script, "slurmstepd killed")
    for file in (path, work / "bin/python3"):
        file.write_text(file.read_text().replace("#!/bin/bash\n", "#!/bin/bash\ntrap '' TERM\n", 1))
    job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", "-J", work.name, path)
    wait_for(lambda: "Tried to allocate" in job.output(), "the failure")
    time.sleep(0.5)
    cluster.run("scancel", job.id)
    assert_stays_cancelled(cluster, work, job)
    assert history(cluster, job)["lineage"]["state"] == "cancelled"


@pytest.mark.parametrize("mode", ["auto", "requeue", "resubmit"])
def test_while_it_is_decided(cluster, work, script, paused, mode):
    job, _ = kinds.submit(cluster, work, script, "plain", "agent away", mode)
    wait_for(lambda: kinds.runs(work), "the first start")
    agent = cluster.record["daemons"]["oomagent"]["pid"]
    paused("oomagent")
    (work / "go").write_text("")
    wait_for(lambda: "Tried to allocate" in job.output(), "the failure")
    time.sleep(1)
    cluster.run("scancel", job.id)
    time.sleep(0.5)
    os.killpg(agent, signal.SIGCONT)
    assert_stays_cancelled(cluster, work, job)
    assert "told to end by signal 15" in job.output()
    assert history(cluster, job)["lineage"]["state"] == "stopped"


def test_decided_and_not_done(cluster, work, script, paused):
    """The supervisor dies while it asks for the requeue; by the time that the agent sees it, the
    job has been cancelled."""
    path, memory = kinds.write_job(work, script, "gpu")
    script(f"""#!/bin/bash
if [ "$1" = requeue ]; then
    touch {work}/asked
    while [ ! -e {work}/die ]; do sleep 0.1; done
    kill -9 $PPID
    exit 1
fi
exec /usr/bin/scontrol "$@"
""", "bin/scontrol")
    job = cluster.sbatch(work, "--oom-retry=relax", "--oom-mode=requeue", f"--mem={memory}", "-J", work.name,
                         path, env={"PATH": f"{work}/bin:{os.environ['PATH']}"})
    wait_for((work / "asked").exists, "the requeue")
    agent = cluster.record["daemons"]["oomagent"]["pid"]
    paused("oomagent")
    cluster.run("scancel", job.id)
    (work / "die").write_text("")
    assert job.wait()["JobState"] == "CANCELLED"
    os.killpg(agent, signal.SIGCONT)
    assert_stays_cancelled(cluster, work, job)
    assert "cancelled before its next attempt" in history(cluster, job)["lineage"]["reason"]


@pytest.mark.parametrize("kind", ["plain", "array"])
def test_the_new_job_before_it_began(cluster, work, script, kind):
    """Slurm does not find a task of an array that was cancelled before any of them began."""
    job, _ = kinds.submit(cluster, work, script, kind, "agent away", "resubmit")
    first = kinds.watched(job, kind)
    wait_for(lambda: kinds.runs(work), "the first start")
    partition = job.record()["Partition"]
    cluster.run("scontrol", "update", f"partition={partition}", "state=down", root=True)
    try:
        (work / "go").write_text("")
        wait_for(lambda: ((history(cluster, first)["attempts"][1:] or [{}])[0].get("acted") or "")
                 .startswith("submitted as job "), "the new job")
        new = history(cluster, first)["lineage"]["jobs"][1]
        wait_for(lambda: first.record()["JobState"] == "FAILED", "the old one to end")
        cluster.run("scancel", new.split("_")[0])
    finally:
        cluster.run("scontrol", "update", f"partition={partition}", "state=up", root=True)
    wait_for(lambda: kinds.is_over(cluster, first), "the lineage to end", 60, 0.4)
    assert history(cluster, first)["lineage"]["state"] in ("stopped", "cancelled")
    assert history(cluster, first)["lineage"]["jobs"] == [first.id, new]
