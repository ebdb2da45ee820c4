# SPDX-License-Identifier: Apache-2.0
"""The node's agent among users who mean no good, other agents, and other clusters: a job that runs
under its supervisor is left alone, and nobody keeps anybody else waiting."""
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import kinds
from book import Book
from conftest import REPO, Job, install, wait_for

OTHER = pwd.getpwnam("games")
QUIET_S = 18  # an attempt is let alone for 10 s, and looked at every 5


def as_other(cluster, work, *argv):
    done = subprocess.run([str(word) for word in argv], env=cluster.environment({"USER": OTHER.pw_name}),
                          cwd=work, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, user=OTHER.pw_uid, group=OTHER.pw_gid, extra_groups=[])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextlib.contextmanager
def another_agent(cluster, *wrapper, path=None):
    """A second one, of a node of the same cluster."""
    home = Path(tempfile.mkdtemp(prefix="agent-", dir=cluster.dir.parent))
    config = home / "oomretry.conf"
    config.write_text(f"role: node\nhead_url: {cluster.dir}/oomretry/head.sock\n"
                      f"node_socket: {home}/node.sock\n")
    env = cluster.environment({"OOMRETRY_CONFIG": str(config)})
    if path:
        env["PATH"] = f"{path}:{env['PATH']}"
    with open(home / "log", "w") as log:
        process = subprocess.Popen([*map(str, wrapper), str(cluster.prefix / "sbin/oomagent")], env=env,
                                   stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for((home / "node.sock").exists, "the other agent")
        yield home / "log"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(home)


def unit_capabilities():
    """Of a root whose powers are those of the shipped unit."""
    unit = (REPO / "contrib/systemd/oomagent.service").read_text()
    kept = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).split()
    return "-all," + ",".join("+" + name.lower().removeprefix("cap_") for name in kept)


def in_namespace(tmp, node):
    """On a machine that sees none of our processes, a user's process calls itself the slurmd of
    another node."""
    fake = tmp / "slurmd"
    fake.write_text("#!/bin/sh\nwhile :; do sleep 1; done\n")
    fake.chmod(0o755)
    start = tmp / "start"
    start.write_text(f"#!/bin/sh\nsetpriv --reuid {OTHER.pw_uid} --clear-groups {fake} -N {node} &\n"
                     'exec "$@"\n')
    start.chmod(0o755)
    return ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", start]


def stopped_of(uid):
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (entry / "status").read_text()
            if f"\nUid:\t{uid}\t" in text and "\nState:\tT" in text:
                yield int(entry.name)


def long_job(cluster, script):
    path = script("#!/bin/bash\nwhile [ ! -e go ]; do sleep 0.2; done\n")
    return cluster.sbatch(path.parent, "--oom-retry=relax", "-J", path.parent.name, path)


def unlisting_squeue(tmp):
    shim = tmp / "squeue"
    shim.write_text(f'#!/bin/sh\necho "$*" >> {tmp}/asked\nexec {shutil.which("squeue")} "$@"\n')
    shim.chmod(0o755)
    return tmp


def assert_let_alone(cluster, job, name):
    """Nobody has taken its supervisor for dead."""
    time.sleep(QUIET_S)
    [attempt] = Book(cluster).attempts(name)
    assert (job.state, attempt["state"], attempt["claimed_by"]) == ("RUNNING", "running", None)


@pytest.fixture
def tmp(cluster):
    wait_for(lambda: cluster.oomctl("history").returncode == 0, "the head")
    path = Path(tempfile.mkdtemp(prefix="t", dir=cluster.dir.parent))
    path.chmod(0o755)
    return path


def test_a_supervised_job_is_let_alone(cluster, work, script, tmp):
    job = long_job(cluster, script)
    node = wait_for(lambda: job.record().get("BatchHost"), "the job to start")
    wait_for(lambda: Book(cluster).attempts(work.name), "the attempt to begin")
    # A user can write lines into the queue; those of the last partition come last.
    forged = as_other(cluster, tmp, "sbatch", "--parsable", "--mem=50", "-p", "small", "-o", "/dev/null",
                      f"--comment=mine\n{job.id} {job.id} FAILED None oomretry", "--wrap", "true")
    with another_agent(cluster, *in_namespace(tmp, node)), \
         another_agent(cluster, "setpriv", "--bounding-set", unit_capabilities(),
                       path=unlisting_squeue(tmp)) as log:
        assert_let_alone(cluster, job, work.name)
        # One agent asks the controller for everybody.
        assert not (tmp / "asked").exists(), (tmp / "asked").read_text()
        assert log.read_text().count("\n") == 1, log.read_text()
    assert Job(cluster, forged, "/dev/null").state == "COMPLETED"
    (work / "go").write_text("")
    assert job.wait()["JobState"] == "COMPLETED", job.output()


def begin_elsewhere(cluster, node, job):
    """A job of another cluster with the same head, begun by its owner."""
    body = {"scheduler": "slurm", "cluster": "elsewhere", "job": job, "token": "t", "restart": 0,
            "name": f"elsewhere-{job}", "node": node, "options": {"policy": "auto"}}
    done = cluster.run("curl", "-sS", "--unix-socket", cluster.dir / "oomretry/head.sock",
                       "-d", json.dumps(body), "http://localhost/v1/attempts/begin")
    assert '"lineage"' in done.stdout, done


def test_jobs_of_another_cluster_are_not_looked_for(cluster, tmp):
    begin_elsewhere(cluster, "n1", "777")
    begin_elsewhere(cluster, cluster.record["nodes"][0], "778")
    time.sleep(QUIET_S)
    for job in "777", "778":
        [lineage] = Book(cluster).lineages(f"elsewhere-{job}")
        assert (lineage["state"], lineage["reason"] or "") == ("running", "")


STOPPING_OOMRUN = """#!/bin/bash
[ "$1 $(id -u)" != "--after {uid}" ] || kill -STOP $$
exec {real}/bin/oomrun "$@"
"""


def test_an_owner_keeps_only_himself_waiting(cluster, work, script, tmp):
    """He stops what acts for him."""
    real = install(cluster.prefix.with_name(tmp.name + "-real"))
    installed = cluster.prefix / "bin/oomrun"
    kept = installed.rename(installed.with_name("kept"))
    installed.write_text(STOPPING_OOMRUN.format(uid=OTHER.pw_uid, real=real))
    installed.chmod(0o755)
    work.chmod(0o777)
    jobs = []
    try:
        path = script("#!/bin/bash\necho $$ >> pids.$UID\nsleep 100\n")
        first = as_other(cluster, work, "sbatch", "--parsable", "--oom-retry", "-o", "/dev/null", path)
        jobs.append(Job(cluster, first, "/dev/null"))
        wait_for(lambda: Book(cluster).rows("SELECT 1 FROM job WHERE job = ?", first), "the first")
        second = cluster.sbatch(work, "--oom-retry", "-J", work.name, path)
        jobs.append(second)
        wait_for(lambda: Book(cluster).attempts(work.name), "the second")
        wait_for(lambda: len(list(work.glob("pids.*"))) == 2, "both scripts")
        # Nobody can report these ends.
        for job in jobs:
            kinds.kill_step(cluster, job.id)
        wait_for(lambda: Book(cluster).lineages(work.name)[0]["state"] != "running",
                 "the second to be settled", 90)
    finally:
        kept.rename(installed)
        for stopped in stopped_of(OTHER.pw_uid):
            os.kill(stopped, signal.SIGKILL)
        for job in jobs:  # Slurm takes them for running
            cluster.run("scancel", job.id, root=True)
            job.wait("CANCELLED")
        shutil.rmtree(real)


@pytest.mark.parametrize("directory", ["made", "empty", "used"])
def test_a_directory_that_is_used_is_not_given_away(cluster, tmp, directory):
    home = tmp / "var"
    if directory != "made":
        home.mkdir(mode=0o755)
    if directory == "used":
        (home / "spool").mkdir()
    config = tmp / "oomretry.conf"
    config.write_text(f"role: head\nhead_user: {OTHER.pw_name}\nhead_socket: {tmp}/head.sock\n"
                      f"database: {home}/oomretry.db\n")
    with open(tmp / "log", "w") as log:
        agent = subprocess.Popen([cluster.prefix / "sbin/oomagent", "--config", config], stderr=log)
    try:
        if directory == "used":
            assert agent.wait(20) != 0
            assert "is not empty" in (tmp / "log").read_text()
            assert home.stat().st_uid == 0
        else:
            wait_for((home / "oomretry.db").exists, "the database")
            assert home.stat().st_uid == OTHER.pw_uid
    finally:
        agent.terminate()
        agent.wait()


@pytest.mark.parametrize("mode", ["resubmit", "requeue"])
def test_a_dependent_of_somebody_else(cluster, work, script, tmp, mode):
    """Only its owner may change what it waits for; the job is retried all the same."""
    path, memory = kinds.write_job(work, script, "gpu" if mode == "resubmit" else "oomrun killed")
    job = cluster.sbatch(work, "--oom-retry=relax", f"--oom-mode={mode}", f"--mem={memory}", "--hold",
                         "-J", work.name, path)
    other = as_other(cluster, tmp, "sbatch", "--parsable", "--mem=50", "-o", "/dev/null",
                     f"--dependency=afterok:{job.id}", "--wrap", "true")
    mine = cluster.sbatch(work, "--mem=50", "-o", "/dev/null", f"--dependency=afterok:{job.id}",
                          "--wrap", "true")
    cluster.run("scontrol", "release", job.id)
    try:
        wait_for(lambda: Book(cluster).lineages(work.name) and
                 Book(cluster).lineages(work.name)[0]["state"] == "completed", "the lineage to end", 60, 0.4)
        mine.wait("COMPLETED")
    finally:
        cluster.run("scancel", other, root=True)
    assert len(kinds.runs(work)) == 2


def test_a_task_of_a_large_array(cluster, work, script):
    """It is submitted again, and who waits for the array waits for all its other tasks too."""
    path, memory = kinds.write_job(work, script, "gpu")
    job = cluster.sbatch(work, "--oom-retry=relax", "--oom-mode=resubmit", f"--mem={memory}", "--array=1-999%1",
                         "-J", work.name, path)
    after = cluster.sbatch(work, "--mem=50", "-o", "/dev/null", f"--dependency=afterok:{job.id}",
                           "--wrap", "true")
    try:
        wait_for(lambda: len({run[0] for run in kinds.runs(work)}) >= 2 and
                 Book(cluster).lineages(work.name)[0]["state"] == "completed", "the lineage to end", 60, 0.4)
        waits = after.record()["Dependency"]
        assert f"{job.id}_1(" not in waits and f"{job.id}_999(" in waits, waits[:200]
    finally:
        cluster.run("scancel", "--name", work.name, root=True)
        cluster.run("scancel", after.id, root=True)
