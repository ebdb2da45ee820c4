# SPDX-License-Identifier: Apache-2.0
"""Jobs that may not be queued again are submitted again through a real slurmrestd, as their owner,
and through sbatch where that cannot be."""
import os
import re
import resource
import select
import shutil
import signal
import socket
import tempfile
import threading
from pathlib import Path

import pytest

import conftest
from conftest import BUILD, OWNER, Job, wait_for
from training import dependent, history, hog


@pytest.fixture(scope="module")
def cluster():
    """One with slurmrestd, instead of the one that the other tests share."""
    if os.geteuid() != 0:
        pytest.skip("a private Slurm needs root")
    if not (BUILD / "lib/slurm/spank_oomretry.so").exists():
        pytest.fail(f"nothing is built in {BUILD}: run make")
    home = Path(tempfile.mkdtemp(prefix="oomretry-test-"))
    home.chmod(0o755)
    one = conftest.Cluster(home / "c", "--slurmrestd")
    try:
        one.start()
        if not one.memory_limits:
            pytest.skip("no memory cgroup here")
        yield one
    finally:
        one.stop()
        shutil.rmtree(home, ignore_errors=True)


def submissions(cluster):
    """How many jobs slurmrestd was asked to submit."""
    return cluster.log("slurmrestd.out").count("POST /slurm/v0.0.38/job/submit")


SCRIPT = """#!/bin/bash
#SBATCH -J "host hog" --time 7
#SBATCH --ntasks-per-node=1 --threads-per-core=1   # not in the job's record as options
echo "$SLURM_JOB_ID $(id -un) $PWD $COLOUR [$*] $(umask) $(ulimit -Sn)" >> runs
"""


def out_of_memory(cluster, work, script, *arguments):
    """The job, its successor, its dependent and the starts of the script, when all is over."""
    path = script(SCRIPT + hog(200).split("\n", 1)[1])
    umask = os.umask(0o027)  # goes with the job, as does a limit
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (333, files[1]))
    try:
        job = cluster.sbatch(work, "--no-requeue", "--oom-retry", "--mem=150", "--comment=mine",
                             "-c", "2", path, *arguments, env={"COLOUR": "blue 'n' =1"})
    finally:
        os.umask(umask)
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
    after = dependent(cluster, work, job)
    assert job.wait()["JobState"] == "OUT_OF_MEMORY", job.output()
    number = wait_for(lambda: [new for new in history(cluster, job)["lineage"]["jobs"]
                               if new != job.id], "a new job")[0]
    new = Job(cluster, number, work / f"{number.split('_')[0]}.out")
    return job, new, after, lambda: (work / "runs").read_text().splitlines()


def test_submitted_as_the_owner(cluster, work, script):
    before = submissions(cluster)
    job, new, after, starts = out_of_memory(cluster, work, script)
    record = new.wait()
    assert record["JobState"] == "COMPLETED", (record, new.output())
    assert submissions(cluster) == before + 1
    assert "sbatch" not in job.output()
    assert record["UserId"].startswith(OWNER.pw_name + "(")
    assert int(record["MinMemoryNode"].rstrip("M")) > 200
    assert (record["Requeue"], record["TimeLimit"], record["CPUs/Task"]) == ("0", "00:07:00", "2")
    assert record["NtasksPerN:B:S:C"].startswith("1:0:")
    text = cluster.run("scontrol", "show", "job", new.id).stdout
    assert "JobName=host hog\n" in text and "Comment=mine oomretry:L" in text
    assert starts() == [f"{number} nobody {work} blue 'n' =1 [] 0027 333"
                        for number in (job.id, new.id)]
    assert after.wait()["JobState"] == "COMPLETED"
    story = history(cluster, job)
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "resubmit"]
    assert [attempt["outcome"] for attempt in story["attempts"]] == ["oom", "completed"]


def test_one_task_of_an_array(cluster, work, script):
    path = script("#!/bin/bash\n[ $SLURM_ARRAY_TASK_ID = 1 ] || exit 0\n" +
                  hog(200).split("\n", 1)[1])
    before = submissions(cluster)
    array = cluster.sbatch(work, "--no-requeue", "--oom-retry", "--mem=150", "--array=0-1", path)
    after = dependent(cluster, work, array)
    task = Job(cluster, array.id + "_1", array.path)
    task.wait()
    number = wait_for(lambda: [new for new in history(cluster, task)["lineage"]["jobs"]
                               if new != task.id], "a new job")[0]
    assert Job(cluster, number, "").wait()["JobState"] == "COMPLETED"
    assert number.endswith("_1")
    assert submissions(cluster) == before + 1
    assert after.wait()["JobState"] == "COMPLETED"


def jobs_with_mark_of(cluster, job):
    lines = cluster.run("squeue", "-h", "-t", "all", "-o", "%i %k").stdout.splitlines()
    mark = next(line.split()[-1] for line in lines if line.startswith(job.id + " "))
    assert mark.startswith("oomretry:L")
    return [line.split()[0] for line in lines if line.split()[-1] == mark]


def falls_back(cluster, work, script, words, *arguments):
    job, new, after, starts = out_of_memory(cluster, work, script, *arguments)
    assert new.wait()["JobState"] == "COMPLETED", (new.record(), new.output())
    assert "submitted by sbatch, as slurmrestd could not: " + words in job.output()
    assert after.wait()["JobState"] == "COMPLETED"
    # Not one job more than there should be.
    assert len(history(cluster, job)["lineage"]["jobs"]) == 2
    assert [start.split()[0] for start in starts()] == [job.id, new.id]
    assert jobs_with_mark_of(cluster, new) == [new.id]
    return starts()


def test_what_slurmrestd_cannot_say(cluster, work, script):
    """22.05 dies of script arguments, after it has passed the job on."""
    before = submissions(cluster)
    starts = falls_back(cluster, work, script, "v0.0.38 of slurmrestd cannot be given the script's "
                        "arguments", "a b", "c")
    assert {start.split("[")[1].split("]")[0] for start in starts} == {"a b c"}
    assert submissions(cluster) == before


def test_slurmrestd_down(cluster, work, script):
    entry = cluster.record["daemons"]["slurmrestd"]
    os.kill(entry["pid"], signal.SIGKILL)
    try:
        falls_back(cluster, work, script, "no answer: ")
    finally:
        cluster.devcluster("restart", "slurmrestd")


class Cutter:
    """Stands before slurmrestd on a unix socket and loses its answers to submissions."""

    def __init__(self, cluster):
        self.config = cluster.dir / "oomretry.conf"
        self.original = self.config.read_text()
        self.target = int(re.search(r"slurmrestd: http://127.0.0.1:(\d+)", self.original).group(1))
        self.cut = 0

    def __enter__(self):
        path = Path(tempfile.mkdtemp(prefix="s", dir=self.config.parents[1]), "rest.sock")
        path.parent.chmod(0o755)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(str(path))
        path.chmod(0o777)
        self.sock.listen()
        self.config.write_text(re.sub("slurmrestd: .*", f"slurmrestd: unix:{path}", self.original))
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.config.write_text(self.original)
        self.sock.close()

    def serve(self):
        while True:
            try:
                client, _ = self.sock.accept()
            except OSError:
                return
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                posted = False
                while pieces := select.select([client, server], [], [])[0]:
                    data = pieces[0].recv(65536)
                    if not data:
                        break
                    posted = posted or data.startswith(b"POST")
                    if pieces[0] is client:
                        server.sendall(data)
                    elif posted:
                        self.cut += 1
                        break
                    else:
                        client.sendall(data)


def test_slurmrestd_dies_after_taking_the_job(cluster, work, script):
    """The answer is lost, the job is not submitted twice."""
    proxy = Cutter(cluster)
    with proxy:
        job, new, _, starts = out_of_memory(cluster, work, script)
        assert new.wait()["JobState"] == "COMPLETED", (new.record(), new.output())
    assert proxy.cut == 1
    assert "submitted by sbatch" not in job.output()
    assert [start.split()[0] for start in starts()] == [job.id, new.id]
    assert jobs_with_mark_of(cluster, new) == [new.id]


def test_token_is_nowhere(cluster):
    """After all of the above: a JWT begins with eyJ."""
    logs = [path for path in cluster.dir.rglob("*.out")]
    outputs = [path for path in cluster.dir.parent.glob("w*/*.out")]
    assert logs and outputs
    for path in logs + outputs:
        assert "eyJ" not in path.read_text(errors="replace"), path
