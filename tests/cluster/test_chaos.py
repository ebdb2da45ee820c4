# SPDX-License-Identifier: Apache-2.0
"""Random kills at random moments: no lineage is lost, none is retried twice for one failure, the
database stays consistent. OOMRETRY_CHAOS_RUNS sets how many (a few by default)."""
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from conftest import OWNER, Cluster, wait_for

RUNS = int(os.environ.get("OOMRETRY_CHAOS_RUNS", "6"))
SEED = int(os.environ.get("OOMRETRY_CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
VICTIMS = ("oomrun", "oomagent", "slurmd", "slurmctld", "slurmstepd")

# Fails with the real message while it has too many tokens, and tells the test when it runs.
TRAINER = """#!/bin/bash
tokens=0
while [ $# -gt 0 ]; do [ "$1" = --max-tokens-per-gpu ] && tokens=$2; shift; done
echo "$SLURM_JOB_ID $tokens" >> starts
sleep 0.7
if [ "$tokens" -gt 7000 ]; then
    echo '  File "/x/relax/backends/megatron/actor.py", line 424, in train_actor'
    echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total' \\
        'capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process' \\
        'has 78.12 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and' \\
        '100.00 MiB is reserved by PyTorch but unallocated.'
    exit 1
fi
sleep 0.3
echo done
"""
SCRIPT = """#!/bin/bash
#SBATCH --oom-retry --mem=60 --open-mode=append
export PATH=$PWD/bin:$PATH
python3 -m relax.entrypoints.train --use-dynamic-batch-size --recompute-granularity full \\
    --recompute-method uniform --recompute-num-layers 1 --max-tokens-per-gpu 12288
"""


@pytest.fixture(scope="module")
def arena():
    """A cluster of its own: what is killed here is not missed by other tests."""
    if os.geteuid() != 0:
        pytest.skip("a private Slurm needs root")
    home = Path(tempfile.mkdtemp(prefix="oomretry-chaos-"))
    home.chmod(0o755)
    one = Cluster(home / "c")
    try:
        one.start()
        yield one
    finally:
        one.stop()
        shutil.rmtree(home, ignore_errors=True)


def stage(cluster):
    work = Path(tempfile.mkdtemp(prefix="w", dir=cluster.dir.parent))
    (work / "bin").mkdir()
    (work / "bin/python3").write_text(TRAINER)
    (work / "job.sh").write_text(SCRIPT)
    for path in (work, work / "bin", work / "bin/python3", work / "job.sh"):
        os.chown(path, OWNER.pw_uid, OWNER.pw_gid)
        path.chmod(0o755)
    return work


def pids(pattern):
    done = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split() if int(word) != os.getpid()]


def kill(cluster, victim, job):
    """SIGKILL, and what died is started again as a service manager would."""
    if victim == "oomrun":
        for pid in pids(f"oomrun --slurm {cluster.dir}/.*job0*{job}/"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    elif victim == "slurmstepd":
        for pid in pids(rf"slurmstepd: \\[{job}\\."):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        name = victim
        if victim == "slurmd":
            nodes = cluster.run("sinfo", "-h", "-N", "-o", "%N").stdout.split()
            name = f"slurmd.{random.choice(nodes)}" if nodes else None
        if name:
            cluster.devcluster("restart", name, "--kill")


def lineages(cluster):
    done = cluster.oomctl("history", "--all", "--json", "--limit", "10000", root=True)
    return json.loads(done.stdout)["lineages"] if done.returncode == 0 else None


def heal(cluster):
    """What an administrator does after such a night: Slurm drains nodes whose slurmd was killed
    while a job was starting, holds those jobs, and takes a job whose slurmstepd was killed for
    running until it is told otherwise."""
    for line in cluster.run("sinfo", "-h", "-N", "-o", "%N %T").stdout.splitlines():
        name, state = line.split()
        if state.startswith(("down", "drain")):
            cluster.run("scontrol", "update", f"nodename={name}", "state=resume", root=True)
    for line in cluster.run("squeue", "-h", "-o", "%A %T %M %r").stdout.splitlines():
        job, state, elapsed, why = line.split(" ", 3)
        if state == "PENDING" and "held" in why:
            cluster.run("scontrol", "release", job, root=True)
        if state == "RUNNING" and (len(elapsed) > 4 or elapsed > "0:40"):
            cluster.run("scancel", job, root=True)


def settled(cluster):
    heal(cluster)
    queued = cluster.run("squeue", "-h", "-o", "%A")
    rows = lineages(cluster)
    return (queued.returncode == 0 and not queued.stdout.strip() and rows is not None and
            all(row["state"] not in ("running", "waiting") for row in rows))


def test_random_kills(arena):
    chance = random.Random(SEED)
    works = {}
    story = []
    for number in range(RUNS):
        work = stage(arena)
        job = arena.sbatch(work, "job.sh")
        works[job.id] = work
        victim, when = chance.choice(VICTIMS), chance.uniform(0.0, 3.5)
        time.sleep(when)
        story.append(f"run {number}: job {job.id}, {victim} after {when:.2f} s")
        kill(arena, victim, job.id)
        heal(arena)
    text = f"seed {SEED}\n" + "\n".join(story)
    try:
        wait_for(lambda: settled(arena), "every lineage to be over", seconds=120 + 5 * RUNS, pause_s=1)
    except AssertionError:
        left = [row for row in lineages(arena) or [] if row["state"] in ("running", "waiting")]
        pytest.fail(f"{text}\nnot over: {json.dumps(left, indent=1)}\n"
                    f"{arena.run('squeue', '-t', 'all').stdout}\n{arena.log('oomagent.out')[-3000:]}")

    known = {job for row in lineages(arena) for job in row["jobs"]}
    for job, work in works.items():
        if not (work / "starts").exists():
            continue  # killed before its script began
        starts = (work / "starts").read_text().split("\n")[:-1]
        assert job in known, f"{text}\njob {job} has no lineage, but ran: {starts}"
    with sqlite3.connect(f"file:{arena.dir}/oomretry/db/oomretry.db?mode=ro", uri=True) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",), text
        for job, work in works.items():
            if not (work / "starts").exists():
                continue
            small = [line for line in (work / "starts").read_text().split("\n")
                     if line and int(line.split()[1]) <= 7000]
            restarts, = db.execute(
                "SELECT count(*) FROM attempt a JOIN job j ON j.lineage = a.lineage "
                "WHERE j.job = ? AND a.mode = 'scheduler'", (job,)).fetchone()
            # A controller that was killed may forget that it had started a job, and start it anew.
            lives, = db.execute("SELECT count(*) FROM job WHERE job = ?", (job,)).fetchone()
            assert len(small) <= lives + restarts, f"{text}\njob {job} was retried twice: {small}"
    print(text)
