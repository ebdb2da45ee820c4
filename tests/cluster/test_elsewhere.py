# SPDX-License-Identifier: Apache-2.0
"""Jobs that Slurm or a foreign process moves: preemption, a card that somebody else holds; and what
a job that is submitted again takes along."""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import second
from conftest import BUILD, wait_for
from kinds import is_over, runs, story_of, write_job

SMI = """#!/bin/bash
echo "$SLURMD_NODENAME" >> HERE/looks
[ "$SLURMD_NODENAME" != "$(cat HERE/busy 2>/dev/null)" ] || echo "1234, 9999" | sed "s/1234/$(cat HERE/pid)/"
"""
# What Slurm says by itself where there are cards.
PROLOG = """#!/bin/bash
echo print Welcome to $SLURMD_NODENAME
echo export CUDA_VISIBLE_DEVICES=0
"""
MAIL = """#!/bin/bash
echo "$*" >> HERE/mails
"""


@pytest.fixture(scope="module")
def home():
    """Programs that belong to root, as trusted ones must; readable by the owner of the jobs, which
    pytest's own directories are not."""
    path = Path(tempfile.mkdtemp(prefix="oomretry-test-"))
    path.chmod(0o755)
    for name, text in ("nvidia-smi", SMI), ("mail", MAIL), ("prolog", PROLOG):
        (path / name).write_text(text.replace("HERE", str(path)))
        (path / name).chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def cluster(home):
    if os.geteuid() != 0:
        pytest.skip("a private Slurm needs root")
    if not (BUILD / "lib/slurm/spank_oomretry.so").exists():
        pytest.fail(f"nothing is built in {BUILD}: run make")
    with second.cluster("--conf", "PreemptType=preempt/partition_prio",
                        "--conf", "PreemptMode=REQUEUE", "--conf", "Licenses=dongle:1",
                        "--conf", f"TaskProlog={home}/prolog",
                        "--conf", f"MailProg={home}/mail",
                        "--conf", "PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=60",
                        "--agent-conf", f"nvidia_smi: {home}/nvidia-smi") as one:
        yield one


def test_leaves_a_node_whose_card_somebody_holds(cluster, work, script, home):
    path, memory = write_job(work, script, "gpu")
    # The node on which the job happens to begin is the one whose card is held.
    path.write_text(path.read_text().replace(
        "export PATH", f'[ -s {home}/busy ] || echo "$SLURMD_NODENAME" > {home}/busy\nexport PATH', 1))
    (home / "busy").touch()
    (home / "busy").chmod(0o666)
    (home / "pid").write_text(str(os.getpid()))
    try:
        job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}",
                             "--open-mode=append", path)
        record = job.wait()
        busy = (home / "busy").read_text().strip()
    finally:
        (home / "busy").unlink()
    assert record["JobState"] == "COMPLETED", job.output()
    assert record["ExcNodeList"] == busy and record["NodeList"] != busy, job.output()
    assert f"process {os.getpid()} (" in job.output()
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "requeue"]
    assert story["attempts"][1]["decision"]["kind"] != "resources"


@pytest.mark.parametrize("kind", ["two nodes", "het"])
def test_looks_at_all_nodes_of_the_job(cluster, work, script, home, kind):
    """The cards of the node that the batch script does not run on are the job's, too. What the job
    asked of srun is not for that look."""
    path, memory = write_job(work, script, "gpu")
    here, there = cluster.record["nodes"][:2]
    (home / "looks").touch()
    (home / "looks").chmod(0o666)
    where = ["-N2"] if kind == "two nodes" else ["-w", here, ":", "--mem=50", "-w", there]
    job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", "--ntasks-per-node=2",
                         "--export=ALL,SLURM_STDOUTMODE=/nowhere/x", *where, path)
    job.wait("COMPLETED")
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "inplace"], job.output()
    assert there in (home / "looks").read_text().split(), job.output()
    assert "could not be looked at" not in job.output()


def test_leaves_another_node_whose_card_somebody_holds(cluster, work, script, home):
    path, memory = write_job(work, script, "gpu")
    (home / "busy").write_text(cluster.record["nodes"][1] + "\n")
    (home / "pid").write_text(str(os.getpid()))
    try:
        job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", "-N2", "-w",
                             ",".join(cluster.record["nodes"][:2]), "--open-mode=append", path)
        record = job.wait()
    finally:
        (home / "busy").unlink()
    assert record["JobState"] == "COMPLETED", job.output()
    assert f"holds memory of this job's GPUs on {cluster.record['nodes'][1]}" in job.output()
    assert "no other node to go to" in job.output()


def test_preempted_and_queued_again(cluster, work, script):
    """Slurm's own restart is no retry, and keeps the settings that the last attempt had."""
    path, memory = write_job(work, script, "gpu")
    trainer = work / "bin/python3"
    trainer.write_text(trainer.read_text().replace(
        'echo "trained', f'while [ ! -e {work}/go ]; do sleep 0.2; done\necho "trained'))
    job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", "--open-mode=append",
                         "--exclusive", "-w", cluster.record["nodes"][0], path)
    wait_for(lambda: len(runs(work)) == 2, "the second attempt")
    wait_for(lambda: story_of(cluster, job)["attempts"][-1]["state"] == "running", "its report")
    urgent = cluster.sbatch(work, "-p", "urgent", "--mem=50", "--exclusive", "-w",
                            cluster.record["nodes"][0], "--wrap", "sleep 1")
    urgent.wait("COMPLETED")
    (work / "go").touch()
    record = job.wait("COMPLETED", seconds=180)
    assert record["Restarts"] == "1", job.output()
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    attempts = story["attempts"]
    assert [attempt["mode"] for attempt in attempts] == ["first", "inplace", "scheduler"]
    assert attempts[2]["total_edits"] == attempts[1]["total_edits"] != []
    assert [bool(attempt["decision"]) for attempt in attempts] == [False, True, False]
    assert len(runs(work)) == 3


def test_what_is_submitted_again_is_the_same_job(cluster, work, script, home):
    """Name, mail, licence, reservation, signal: of the new job as of the old one; and no mail says
    that a job which was retried under its id has failed."""
    cluster.run("scontrol", "create", "reservation", "reservationname=mine", "starttime=now",
                "duration=60", "users=nobody", "nodecnt=1", root=True)
    path, memory = write_job(work, script, "gpu")
    options = ["--oom-retry=relax", f"--mem={memory}", "-J", "my run", "-L", "dongle:1",
               "--reservation=mine", "--mail-type=FAIL,END", "--mail-user=a@b.c",
               "--open-mode=append"]
    job = cluster.sbatch(work, *options, "--oom-mode=resubmit", path)
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    assert story["lineage"]["state"] == "completed", job.output()
    first, again = (type(job)(cluster, number, "").record() for number in story["lineage"]["jobs"])
    for key in "JobName", "Licenses", "Reservation", "MailUser", "MailType", "TimeLimit":
        assert again.get(key) == first.get(key) != "(null)", key
    requeued = cluster.sbatch(work, *options, "--oom-mode=requeue", path, "other")
    assert requeued.wait("COMPLETED")["Restarts"] == "1"
    mails = wait_for(lambda: [line for line in (home / "mails").read_text().splitlines()
                              if f"={requeued.id} " in line and "Ended" in line], "its mail")
    assert len(mails) == 1 and "COMPLETED" in mails[0]


STEPS = """#!/bin/bash
export PATH={work}/bin:$PATH
srun -n 1 bash -c 'echo prepared >> {work}/steps'
srun --export=ALL -n 1 python3 -m relax.entrypoints.train --use-dynamic-batch-size --max-tokens-per-gpu 8192{then}
srun -n 1 bash -c 'echo evaluated >> {work}/steps'
"""


@pytest.mark.parametrize("then,starts", [(" || exit 1", 2), (' || echo "going on without it"', 1)])
def test_one_of_several_steps(cluster, work, script, then, starts):
    """The step that ran out is what changes; a script that goes on by itself has not failed."""
    write_job(work, script, "gpu")
    path = script(STEPS.format(work=work, then=then), "steps.sh")
    job = cluster.sbatch(work, "--oom-retry=relax", "--mem=200", "--open-mode=append", path)
    assert job.wait()["JobState"] == "COMPLETED", job.output()
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    assert story["lineage"]["state"] == "completed"
    assert len(story["attempts"]) == starts
    assert (work / "steps").read_text().splitlines() == ["prepared"] * starts + ["evaluated"]
