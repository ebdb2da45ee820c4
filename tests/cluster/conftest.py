# SPDX-License-Identifier: Apache-2.0
"""A real Slurm for the tests of this directory: one private cluster for all of them, started by
contrib/devcluster, with a copy of the built tree as its installation. Jobs belong to `nobody`."""
import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("OOMRETRY_BUILD", REPO / "build"))
DEVCLUSTER = REPO / "contrib" / "devcluster"
OWNER = pwd.getpwnam("nobody")
DEADLINE_S = 60
PATIENCE = float(os.environ.get("OOMRETRY_TEST_PATIENCE", "1"))  # more on slow machines


def install(prefix, parts=("bin", "sbin", "lib", "libexec", "share")):
    """What `make install` does, without waiting for the parts that a test does not need."""
    for part in parts:
        if (BUILD / part).exists():
            shutil.copytree(BUILD / part, prefix / part, dirs_exist_ok=True)
    return prefix


def wait_for(ready, what, seconds=DEADLINE_S, pause_s=0.05):
    deadline = time.monotonic() + seconds * PATIENCE
    while not (value := ready()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds * PATIENCE:g} s"
        time.sleep(pause_s * PATIENCE)
    return value


class Job:
    """One submitted job: its record as scontrol shows it, and its output."""

    def __init__(self, cluster, number, output):
        self.cluster, self.id, self.path = cluster, number, Path(output)

    def record(self):
        text = self.cluster.run("scontrol", "show", "job", "-d", self.id).stdout
        words = (word.split("=", 1) for word in text.split() if "=" in word)
        return {key: value for key, value in words}

    @property
    def state(self):
        return self.record().get("JobState")

    def wait(self, *states, seconds=DEADLINE_S):
        """Waits for one of the states; without any, for the end. Returns the record."""
        def reached():
            record = self.record()
            ended = record["JobState"] not in ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED")
            return record if (record["JobState"] in states if states else ended) else None
        try:
            return wait_for(reached, f"job {self.id} to reach {states or 'its end'}", seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}; it is\n{self.record()}\n{self.output()}") from None

    def output(self):
        return self.path.read_text(errors="replace") if self.path.exists() else ""

    def script_output(self):
        """Without the lines that oomrun adds."""
        return "".join(line for line in self.output().splitlines(keepends=True)
                       if not line.startswith("oomrun:"))


class Cluster:
    def __init__(self, directory, *options):
        self.dir = Path(directory)
        self.prefix = self.dir.with_name(self.dir.name + "-prefix")
        self.options = options

    def start(self):
        install(self.prefix)
        self.devcluster("start", "--prefix", str(self.prefix), *self.options)
        self.conf = self.dir / "slurm.conf"
        self.socket = self.dir / "oomretry" / "node.sock"
        self.original_plugstack = (self.dir / "plugstack.conf").read_text()

    def devcluster(self, verb, *arguments):
        done = subprocess.run([DEVCLUSTER, verb, "--dir", str(self.dir), *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout
        return done

    def stop(self):
        self.devcluster("stop")
        shutil.rmtree(self.prefix, ignore_errors=True)

    @property
    def record(self):
        return json.loads((self.dir / "devcluster.json").read_text())

    @property
    def memory_limits(self):
        return self.record["memory"].startswith("enforced")

    def environment(self, extra=None):
        plain = {key: value for key, value in os.environ.items()
                 if not key.startswith(("SLURM", "SBATCH", "OOMRETRY"))}
        return {**plain, "SLURM_CONF": str(self.conf), "HOME": "/nonexistent",
                "USER": OWNER.pw_name, **(extra or {})}

    def run(self, *argv, env=None, cwd=None, text_in=None, root=False):
        """A command as the owner of the jobs."""
        owner = {} if root else {"user": OWNER.pw_uid, "group": OWNER.pw_gid, "extra_groups": []}
        return subprocess.run([str(word) for word in argv], env=self.environment(env), cwd=cwd,
                              input=text_in, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, **owner)

    def sbatch(self, work, *arguments, env=None, text_in=None):
        """Submits; the output goes to work/JOBID.out."""
        done = self.run("sbatch", "--parsable", "-o", work / "%j.out", *arguments, env=env,
                        cwd=work, text_in=text_in)
        assert done.returncode == 0, done.stderr
        number = done.stdout.strip()
        return Job(self, number, work / f"{number}.out")

    @contextlib.contextmanager
    def plugstack(self, line):
        """Another plugstack.conf for a while; Slurm reads it at each launch."""
        self.set_plugstack(line + "\n" if line else "")
        try:
            yield
        finally:
            self.set_plugstack(self.original_plugstack)

    def set_plugstack(self, text):
        partial = self.dir / "plugstack.new"
        partial.write_text(text)
        partial.rename(self.dir / "plugstack.conf")

    def plugin_line(self, prefix=None, site="", agent_socket=None):
        return (f"optional {BUILD}/lib/slurm/spank_oomretry.so prefix={prefix or self.prefix} "
                f"socket={agent_socket or self.socket} {site}")

    def oomctl(self, *arguments, root=False):
        return self.run(self.prefix / "bin/oomctl", *arguments, root=root,
                        env={"OOMRETRY_CONFIG": str(self.dir / "oomretry.conf")})

    def log(self, name):
        return (self.dir / "log" / name).read_text(errors="replace")


@pytest.fixture(scope="session")
def cluster():
    if os.geteuid() != 0:
        pytest.skip("a private Slurm needs root")
    if not (BUILD / "lib/slurm/spank_oomretry.so").exists():
        pytest.fail(f"nothing is built in {BUILD}: run make")
    # Not below pytest's own directories: those are closed to the owner of the jobs.
    home = Path(tempfile.mkdtemp(prefix="oomretry-test-"))
    home.chmod(0o755)
    # A test lets one launch fail.
    prolog = home / "prolog"
    prolog.write_text(f"#!/bin/sh\n[ ! -e {home}/prolog-fails ] && exit 0\n"
                      f"rm {home}/prolog-fails\nexit 1\n")
    prolog.chmod(0o755)
    one = Cluster(home / "c", "--conf", f"Prolog={prolog}", "--conf",
                  "PartitionName=small Nodes=ALL MaxMemPerNode=200 MaxTime=60 State=UP", "--conf",
                  "PartitionName=hidden Nodes=ALL MaxTime=60 State=UP Hidden=YES")
    try:
        one.start()
        yield one
    finally:
        one.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def work(cluster, request):
    """A directory that the owner may write."""
    path = Path(tempfile.mkdtemp(prefix="w", dir=cluster.dir.parent))
    os.chown(path, OWNER.pw_uid, OWNER.pw_gid)
    path.chmod(0o755)
    return path


@pytest.fixture
def script(work):
    """Writes an executable script into the owner's directory."""
    def write(text, name="job.sh"):
        path = work / name
        path.write_text(text)
        path.chmod(0o755)
        os.chown(path, OWNER.pw_uid, OWNER.pw_gid)
        return path
    return write


class Listener:
    """The node agent's socket, read by the test."""

    def __init__(self, path):
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(path))
        self.sock.settimeout(DEADLINE_S)

    def report(self):
        text = self.sock.recv(65536).decode()
        assert text.endswith("\n")
        return dict(line.split("=", 1) for line in text.splitlines())

    def report_of(self, job, event, **fields):
        """The first report of that job and event with these fields; others are dropped."""
        while True:
            report = self.report()
            if (report.get("job") == job.id and report["event"] == event and
                    all(report.get(key) == value for key, value in fields.items())):
                return report

    def close(self):
        self.sock.close()


@pytest.fixture
def listener(cluster):
    """Reports go to the test instead of the agent."""
    path = Path(tempfile.mkdtemp(prefix="s", dir=cluster.dir.parent)) / "node.sock"
    one = Listener(path)
    with cluster.plugstack(cluster.plugin_line(agent_socket=path)):
        yield one
    one.close()


@pytest.fixture
def paused(cluster):
    """Stops a daemon by name, with its children, until the test is over."""
    stopped = []

    def pause(name):
        pid = cluster.record["daemons"][name]["pid"]
        os.killpg(pid, signal.SIGSTOP)
        stopped.append(pid)
    yield pause
    for pid in stopped:
        os.killpg(pid, signal.SIGCONT)
