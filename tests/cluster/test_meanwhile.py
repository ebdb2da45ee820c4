# SPDX-License-Identifier: Apache-2.0
"""What else happens to a job and to those that wait for it: several fail at one moment, and users
stop a job, or change it between two attempts."""
import os
import tempfile
import time
from pathlib import Path

import pytest

import kinds
from conftest import OWNER, wait_for
from training import history

# The kernel ends its first start, the second one has too large a setting.
TWO_REASONS = kinds.GPU_TRAINER.replace("AFTER", ":").replace("tokens=0", """tokens=0
if [ "$SLURM_RESTART_COUNT" = "" ]; then
    echo first words >&2
    exec /usr/bin/python3 -c 'x = bytearray(140 << 20)'
fi""", 1)


def asked(cluster, job, form):
    """Of all tasks, in all partitions."""
    return cluster.run("squeue", "-h", "-a", "-r", "-t", "all", "-j", job.id, "-o", form).stdout.split("\n")[:-1]


@pytest.fixture(scope="module", autouse=True)
def stopped(cluster):
    """The agent looks at an attempt that has been quiet for ten seconds; beside the other tests."""
    work = Path(tempfile.mkdtemp(prefix="w", dir=cluster.dir.parent))
    os.chown(work, OWNER.pw_uid, OWNER.pw_gid)
    work.chmod(0o755)

    def script(text, name="job.sh"):
        (work / name).write_text(text)
        (work / name).chmod(0o755)
        return work / name
    job, _ = kinds.submit(cluster, work, script, "plain", "agent away", "auto")
    wait_for(lambda: "Tried to allocate" in job.output(), "the failure")
    cluster.run("scancel", "--signal=STOP", job.id)
    return work, job, time.monotonic()


def test_dependents_of_jobs_that_fail_at_one_moment(cluster, work, script):
    """All are submitted again and change the same dependents, among them an array with many tasks,
    one in a partition that is not shown, and one that takes turns with jobs of its name. A task finds
    the numbers of the whole array, by which it may share out work."""
    path, memory = kinds.write_job(work, script, "agent away")
    path.write_text(path.read_text().replace('if [ "$SLURM_ARRAY_TASK_ID" = 0 ]; then exit 0; fi', f"""
echo "$SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP" >> {work}/arrays"""))
    options = ["--oom-retry=relax", "--oom-mode=resubmit", f"--mem={memory}", "-J", work.name]
    jobs = [cluster.sbatch(work, *options, path) for _ in range(3)]
    array = cluster.sbatch(work, *options, "--array=0-4:2", path)
    everything = ":".join(job.id for job in [*jobs, array])

    def dependent(*more):
        return cluster.sbatch(work, "--mem=10", "-o", "/dev/null", "-J", "after-" + work.name, *more,
                              "--wrap", f"wc -l < {work}/runs >> {work}/seen")
    waiting = [dependent(f"--dependency=afterok:{everything}", "--kill-on-invalid-dep=yes"),
               dependent(f"--dependency=afterok:{everything}", "-p", "hidden"),
               dependent(f"--dependency=afterok:{jobs[0].id}", "--array=1,3,5,9,11,13,15,19,21,23,25,27,31,33%9"),
               dependent(f"--dependency=aftercorr:{array.id}", "--array=0-4:2"),
               dependent("--dependency=singleton", "-J", work.name)]
    waiting.append(dependent(f"--dependency=afterok:{waiting[0].id}:{waiting[1].id}", "--kill-on-invalid-dep=yes"))
    wait_for(lambda: len(kinds.runs(work)) == 6, "the first starts")
    time.sleep(0.5)
    (work / "go").write_text("")
    for job in waiting:
        wait_for(lambda: set(asked(cluster, job, "%T")) == {"COMPLETED"}, f"dependent {job.id}")
    assert len(kinds.runs(work)) == 12
    assert sorted((work / "arrays").read_text().splitlines()) == 6 * ["   "] + 6 * ["3 0 4 2"]
    # Those of everything, and the one that takes turns, came last.
    assert (work / "seen").read_text().splitlines().count("12") >= 4


def test_what_the_owner_changes_between_two_attempts_stays(cluster, work, script):
    """He gives more memory than was decided; the next change is of something else. And of each start
    the errors are kept, which have a file of their own."""
    path, _ = kinds.write_job(work, script, "gpu")
    script(TWO_REASONS, "bin/python3")
    errors = work / "errors"
    job = cluster.sbatch(work, "--oom-retry=relax", "--oom-mode=requeue", "--mem=110", "-J", work.name,
                         "-e", errors, path)
    wait_for(lambda: (lambda now: now["JobState"] == "PENDING" and now["Restarts"] == "1" and
                      now["MinMemoryNode"] == "220M")(job.record()), "the first retry")
    assert cluster.run("scontrol", "update", f"JobId={job.id}", "MinMemoryNode=300").returncode == 0
    assert job.wait(seconds=90)["MinMemoryNode"] == "300M", job.output()
    assert [attempt["mode"] for attempt in history(cluster, job)["attempts"]] == ["first", "requeue", "requeue"]
    assert "first words" in Path(f"{errors}.attempt-1").read_text()


def test_a_stopped_job_has_not_ended(cluster, stopped):
    """Slurm shows STOPPED in the place of its state, and an exit code of 0: it is retried when it
    ends, and its output counts until then."""
    work, job, since = stopped
    time.sleep(max(0, since + 17 - time.monotonic()))
    assert job.state == "STOPPED"
    assert cluster.oomctl("diagnose", "--job", job.id).returncode == 0
    assert history(cluster, job)["lineage"]["state"] == "running"
    (work / "go").write_text("")
    job.wait("COMPLETED")
    assert len(kinds.runs(work)) == 2
