# SPDX-License-Identifier: Apache-2.0
"""From the end of the failed command to the start of the next attempt, with Slurm's own settings
(cred_expire 120, no tuned scheduler), beside what plain Slurm takes in the same cluster."""
import datetime
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pytest

import kinds
from conftest import OWNER, Cluster, wait_for

SAMPLES = 5


@pytest.fixture(scope="module")
def plain_cluster():
    """As a site has it that changed nothing about requeueing and scheduling."""
    if os.geteuid() != 0:
        pytest.skip("a private Slurm needs root")
    home = Path(tempfile.mkdtemp(prefix="oomretry-test-"))
    home.chmod(0o755)
    one = Cluster(home / "c", "--conf", "SchedulerParameters=default_queue_depth=100",
                  "--conf", f"AuthInfo=socket={home}/c/munge.socket")
    try:
        one.start()
        yield one
    finally:
        one.stop()
        shutil.rmtree(home, ignore_errors=True)


def gaps(cluster, mode, samples=SAMPLES, kind="plain"):
    """Seconds between the end of the failed command and the start of the next attempt."""
    found = []
    for _ in range(samples):
        work = Path(tempfile.mkdtemp(prefix="w", dir=cluster.dir.parent))
        os.chown(work, OWNER.pw_uid, OWNER.pw_gid)
        work.chmod(0o755)

        def script(text, name="job.sh"):
            if name == "job.sh":
                stamp = f"date +%s.%N >> {work}/times"
                text = text.replace("\nif [ ", f"\n{stamp}\ntrap '{stamp}' EXIT\nif [ ")
            (work / name).write_text(text)
            (work / name).chmod(0o755)
            return work / name
        job, _ = kinds.submit(cluster, work, script, kind, "gpu", mode)
        wait_for(lambda: (work / "times").exists() and
                 len((work / "times").read_text().split()) == 4, f"two starts of job {job.id}")
        times = [float(word) for word in (work / "times").read_text().split()]
        found.append(times[2] - times[1])
    return found


@pytest.mark.parametrize("kind", ["plain", "two nodes"])
def test_in_place(plain_cluster, kind):
    """Two nodes: a step looks at the other one."""
    measured = gaps(plain_cluster, "inplace", kind=kind)
    print("in place:", measured)
    # Whatever else runs on this machine only adds to it.
    assert min(measured) <= 0.5, measured


def test_requeue(plain_cluster):
    measured = gaps(plain_cluster, "requeue")
    print("requeue:", measured)
    assert statistics.median(measured) <= 5, measured

    # What a plain requeue would have waited for.
    done = plain_cluster.run("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 100")
    job = done.stdout.strip()

    def state():
        text = plain_cluster.run("scontrol", "show", "job", job).stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)
    wait_for(lambda: state()["JobState"] == "RUNNING", "the plain job to run")
    plain_cluster.run("scontrol", "requeue", job)
    wait_for(lambda: state()["JobState"] == "PENDING", "the plain job to be queued")
    eligible = datetime.datetime.fromisoformat(state()["EligibleTime"]).timestamp()
    plain_cluster.run("scancel", job)
    assert eligible - time.time() > 100


def test_resubmit(plain_cluster):
    measured, bare = [], []
    # In turns: what else runs on this machine is in both.
    for _ in range(SAMPLES):
        measured += gaps(plain_cluster, "resubmit", 1)
        work = Path(tempfile.mkdtemp(prefix="w", dir=plain_cluster.dir.parent))
        os.chown(work, OWNER.pw_uid, OWNER.pw_gid)
        began = time.time()
        plain_cluster.run("sbatch", "-o", "/dev/null", "--wrap", f"date +%s.%N > {work}/start")
        wait_for(lambda: (work / "start").exists() and (work / "start").read_text(), "the job")
        bare.append(float((work / "start").read_text()) - began)
    print("resubmit:", measured, "bare sbatch:", bare)
    assert statistics.median(measured) <= 1.5 * statistics.median(bare), (measured, bare)
