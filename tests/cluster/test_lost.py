# SPDX-License-Identifier: Apache-2.0
"""Attempts that nobody could report: launches that failed, heads that were away, dependents of an
array whose supervisor was killed."""
import contextlib
import os
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

import kinds
from book import Book
from conftest import OWNER, Job, install, wait_for
from training import history

# Launches that come after the script's first start go wrong as the file says, a word a launch.
FAULTY_OOMRUN = """#!/bin/bash
plan=$SLURM_SUBMIT_DIR/launches
if [ -s "$SLURM_SUBMIT_DIR/runs" ] && [ -s "$plan" ]; then
    what=$(head -n 1 "$plan")
    case "$what $1" in
    "kill --slurm") sed -i 1d "$plan"; kill -9 $$ ;;
    "broken --version") sed -i 1d "$plan"; exit 127 ;;
    esac
fi
exec REAL/bin/oomrun "$@"
"""


@pytest.fixture
def launches(cluster, work):
    """Lets launches fail in this test's directory: the installed oomrun is a script that executes
    the real one, in a tree of its own."""
    real = install(cluster.prefix.with_name(work.name + "-real"))
    installed = cluster.prefix / "bin/oomrun"
    kept = installed.with_name("kept")
    installed.rename(kept)
    installed.write_text(FAULTY_OOMRUN.replace("REAL", str(real)))
    installed.chmod(0o755)

    def plan(*words):
        (work / "launches").write_text("".join(word + "\n" for word in words))
        (work / "launches").chmod(0o666)
    yield plan
    kept.rename(installed)


@contextlib.contextmanager
def head_away(cluster):
    """Nothing answers at the head's socket."""
    head = cluster.dir / "oomretry" / "head.sock"
    moved = head.with_name("moved.sock")
    head.rename(moved)
    try:
        yield
    finally:
        moved.rename(head)


def wait_over(cluster, job):
    return wait_for(lambda: kinds.is_over(cluster, job), f"the lineage of job {job.id} to end", 90, 0.4)


# --- a restart that dies before its command ------------------------------------------------------


@pytest.mark.parametrize("mode", ["requeue", "resubmit"])
def test_a_failed_launch_is_tried_once_more(cluster, work, script, launches, mode):
    launches("kill")
    job, _ = kinds.submit(cluster, work, script, "plain", "gpu", mode)
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", mode]
    assert "because the launch before had failed" in story["attempts"][1]["acted"]
    assert len(kinds.runs(work)) == 2
    assert len(story["lineage"]["jobs"]) == (1 if mode == "requeue" else 3)


def test_there_is_no_third_launch(cluster, work, script, launches):
    launches("kill", "kill", "kill")
    job, _ = kinds.submit(cluster, work, script, "plain", "gpu", "requeue")
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "stopped"
    assert "without the attempt having begun" in story["lineage"]["reason"]
    assert (work / "launches").read_text() == "kill\n"
    assert len(kinds.runs(work)) == 1


def test_a_plain_run_is_not_repeated(cluster, work, script, launches):
    """The launcher found an oomrun that does not start: the script has run, unsupervised."""
    launches("broken")
    job, _ = kinds.submit(cluster, work, script, "plain", "gpu", "requeue")
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "stopped"
    assert "without the attempt having begun" in story["lineage"]["reason"]
    assert len(kinds.runs(work)) == 2


def test_a_held_launch_waits_for_the_staff(cluster, work, script):
    """A prolog that fails drains the node, and Slurm holds the job: the change is not lost."""
    broken = cluster.dir.parent / "prolog-fails"
    job, _ = kinds.submit(cluster, work, script, "plain", "agent away", "requeue")
    wait_for(lambda: kinds.runs(work), "the first start")
    broken.write_text("")
    (work / "go").write_text("")
    held = wait_for(lambda: (record := job.record())["JobState"] == "PENDING" and
                    "launch_failed" in record["Reason"] and record, "the job to be held")
    assert held["Restarts"] != "0"
    assert history(cluster, job)["lineage"]["state"] == "waiting"
    for name in cluster.record["nodes"]:
        cluster.run("scontrol", "update", f"nodename={name}", "state=resume", root=True)
    cluster.run("scontrol", "release", job.id, root=True)
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert len(kinds.runs(work)) == 2


def test_a_report_that_comes_late(cluster, work, script):
    """The agent hears that the first run has ended when the second one is long under way."""
    path, memory = kinds.write_job(work, script, "gpu")
    trainer = work / "bin/python3"
    trainer.write_text(trainer.read_text().replace(
        'echo "trained', f'while [ ! -e {work}/go ]; do sleep 0.2; done\necho "trained'))
    agent = cluster.record["daemons"]["oomagent"]["pid"]
    os.kill(agent, signal.SIGSTOP)
    try:
        job = cluster.sbatch(work, "--oom-retry=relax", "--oom-mode=requeue", f"--mem={memory}", path)
        wait_for(lambda: len(kinds.runs(work)) == 2, "the second start")
        # As if the requeue had killed the supervisor before it could note that it was done.
        with sqlite3.connect(next((cluster.dir / "oomretry/db").glob("*.db"))) as database:
            database.execute("UPDATE attempt SET acted = NULL WHERE job = ? AND number = 2", [job.id])
    finally:
        os.kill(agent, signal.SIGCONT)
    time.sleep(3)
    (work / "go").write_text("")
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "requeue"]
    claims = Book(cluster).rows("SELECT claimed_by FROM attempt WHERE lineage = ?", story["lineage"]["id"])
    assert [row["claimed_by"] for row in claims] == [None, None]
    assert len(kinds.runs(work)) == 2


# --- a head that is away -------------------------------------------------------------------------


def test_head_comes_back_during_the_attempt(cluster, work, script):
    with head_away(cluster):
        job, _ = kinds.submit(cluster, work, script, "plain", "agent away", "auto")
        wait_for(lambda: kinds.runs(work), "the first start")
    (work / "go").write_text("")
    assert job.wait()["JobState"] == "COMPLETED", job.output()
    story = wait_over(cluster, job)
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "inplace"]
    assert len(kinds.runs(work)) == 2


@pytest.mark.parametrize("kind", ["plain", "no-requeue"])
def test_head_away_from_start_to_end(cluster, work, script, kind):
    """The job ends as it would without oomretry; when the head is back, the agent hands in what
    oomrun left, and the job is started again with its change."""
    with head_away(cluster):
        job, _ = kinds.submit(cluster, work, script, kind, "gpu", "auto")
        assert job.wait()["JobState"] == "FAILED"
        assert "is looked at when the head is back" in job.output()
        assert len(kinds.runs(work)) == 1
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert [attempt["mode"] for attempt in story["attempts"]] == [
        "first", "resubmit" if kind == "no-requeue" else "requeue"]
    assert len(kinds.runs(work)) == 2
    assert not list((cluster.dir / "oomretry/late").iterdir())


def test_what_a_job_kept_is_found_without_its_environment(cluster, work, script):
    """The agent has not got the variables that say where a job keeps its state."""
    path, memory = kinds.write_job(work, script, "oomrun killed")
    job = cluster.sbatch(work, "--oom-retry=relax", "--no-requeue", f"--mem={memory}", path,
                         env={"HOME": str(work), "XDG_STATE_HOME": str(work / "state")})
    story = wait_for(lambda: kinds.is_over(cluster, job), "the lineage to end", 90)
    assert story["lineage"]["state"] == "completed", (story, job.output())
    assert len(kinds.runs(work)) == 2


@pytest.mark.parametrize("copy", [True, False])
def test_script_that_slurm_does_not_hand_out(cluster, work, script, copy):
    """scontrol exits with 0 when the controller does not answer, and writes nothing. The batch step has
    left a copy; without it the attempt stays open: an empty script would have used the ladder up."""
    with head_away(cluster):
        job, _ = kinds.submit(cluster, work, script, "no-requeue", "gpu", "auto")
        assert job.wait()["JobState"] == "FAILED"
        kept = next(cluster.dir.glob(f"state/hash.*/job.{job.id}/script"))
        kept.rename(kept.with_name("elsewhere"))
        name = cluster.conf.read_text().split("ClusterName=")[1].split()[0]
        copies = list(Path(f"/var/tmp/oomretry-{OWNER.pw_uid}").glob(f"{name}-{job.id}.script"))
        assert copies
        if not copy:
            copies[0].unlink()
    if not copy:
        wait_for(lambda: "cannot be had from Slurm: " in cluster.log("oomagent.out"), "a look at it")
        assert history(cluster, job)["lineage"]["state"] == "running"
        kept.with_name("elsewhere").rename(kept)
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert len(kinds.runs(work)) == 2


def test_other_ends_without_a_head(cluster, work, script):
    with head_away(cluster):
        fine = cluster.sbatch(work, "--mem=60", "--oom-retry", script("#!/bin/sh\necho ran\n"))
        fails = cluster.sbatch(work, "--mem=60", "--oom-retry",
                               script("#!/bin/sh\nexit 4\n", "fails.sh"))
        assert fine.wait()["JobState"] == "COMPLETED"
        assert fails.wait()["ExitCode"] == "4:0"
    story = wait_over(cluster, fails)
    assert story["lineage"]["state"] == "failed"
    assert "exit 4, no sign of memory" in story["lineage"]["reason"]
    assert fails.record()["Restarts"] == "0"
    assert cluster.oomctl("history", "--json", fine.id).returncode != 0


# --- dependents of a whole array -----------------------------------------------------------------


def test_dependents_of_an_array_whose_supervisor_was_killed(cluster, work, script):
    """Slurm judges who waits for an array when its last task ends."""
    path, memory = kinds.write_job(work, script, "oomrun killed")
    job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", "-J", work.name,
                         "--array=0-2", path)
    after = cluster.sbatch(work, "--mem=50", "--kill-on-invalid-dep=yes",
                           f"--dependency=afterok:{job.id}", "-o", "/dev/null", "--wrap", "true")
    tasks = [kinds.watched(job, "array"), kinds.Job(cluster, job.id + "_2", job.path)]
    for task in tasks:
        story = wait_over(cluster, task)
        assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert after.wait()["JobState"] == "COMPLETED"
    # The script that the agent's process had Slurm hand out, and its changed copy, are gone.
    assert [path for path in Path("/tmp").glob(".oomrun-after-*") if str(work) in path.read_text()] == []


# --- a controller that forgets --------------------------------------------------------------------


def test_script_that_the_node_removed(cluster, work, script):
    """A controller that was killed and has forgotten a job makes slurmd remove the job's files. The
    change does not depend on them; when they were missed, each rung counted as not writable."""
    job, _ = kinds.submit(cluster, work, script, "plain", "agent away", "auto")
    wait_for(lambda: kinds.runs(work), "the first start")
    node = job.record()["BatchHost"]
    shutil.rmtree(cluster.dir / f"spool.{node}" / f"job{int(job.id):05}")
    (work / "go").write_text("")
    assert job.wait()["JobState"] == "COMPLETED", job.output()
    story = wait_over(cluster, job)
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "inplace"]
    assert [run[0] for run in kinds.runs(work)] == [job.id, job.id]


@pytest.mark.parametrize("ours", [True, False])
def test_a_release_that_was_forgotten(cluster, work, script, ours):
    """A controller that is killed forgets the release of the new job: it is released again. What
    its owner holds stays held."""
    job, _ = kinds.submit(cluster, work, script, "plain", "agent away", "resubmit")
    wait_for(lambda: kinds.runs(work), "the first start")
    partition = job.record()["Partition"]
    cluster.run("scontrol", "update", f"partition={partition}", "state=down", root=True)
    try:
        (work / "go").write_text("")
        done = wait_for(lambda: (story := history(cluster, job))["attempts"][1:] and
                        (story["attempts"][1]["acted"] or "").startswith("submitted as job ") and story,
                        "the new job")
        new = Job(cluster, done["lineage"]["jobs"][1], job.path)
        mark = wait_for(lambda: (comment := new.record()["Comment"]).startswith("oomretry:L") and
                        ":held" not in comment and comment, "the word for the hold to go")
        cluster.run("scontrol", "hold", new.id)
        if ours:
            cluster.run("scontrol", "update", f"jobid={new.id}", f"comment={mark}:held")
    finally:
        cluster.run("scontrol", "update", f"partition={partition}", "state=up", root=True)
    if not ours:
        time.sleep(20)
        assert new.record()["Reason"] == "JobHeldUser"
        cluster.run("scontrol", "release", new.id)
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "completed", story["lineage"]
    assert len(kinds.runs(work)) == 2 and story["lineage"]["jobs"] == [job.id, new.id]


def test_a_new_job_that_was_forgotten(cluster, work, script):
    """A controller that is killed before it has saved the new job does not know it afterwards."""
    job, _ = kinds.submit(cluster, work, script, "no-requeue", "agent away", "resubmit")
    wait_for(lambda: kinds.runs(work), "the first start")
    state, saved = cluster.dir / "state", work / "state"
    time.sleep(6)  # what has changed is saved within five seconds (slurmctld/state_save.c)
    shutil.copytree(state, saved)
    partition = job.record()["Partition"]
    cluster.run("scontrol", "update", f"partition={partition}", "state=down", root=True)
    (work / "go").write_text("")
    wait_for(lambda: ((history(cluster, job)["attempts"][1:] or [{}])[0].get("acted") or "").startswith(
        "submitted as job "), "the new job")
    new = Job(cluster, history(cluster, job)["lineage"]["jobs"][1], job.path)
    assert new.record()["JobState"] == "PENDING"
    os.kill(cluster.record["daemons"]["slurmctld"]["pid"], signal.SIGKILL)
    shutil.rmtree(state)
    shutil.copytree(saved, state)
    cluster.devcluster("restart", "slurmctld")
    story = wait_over(cluster, job)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert "had forgotten the job before" in story["attempts"][1]["acted"]
    assert len(kinds.runs(work)) == 2
