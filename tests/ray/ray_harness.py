# SPDX-License-Identifier: Apache-2.0
"""A real Ray from its package in a virtual environment of its own (made once, in the user's cache),
and the built oomagent that watches it."""
import contextlib
import fcntl
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("OOMRETRY_BUILD", REPO / "build")).absolute()
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")
RAY_VERSION = os.environ.get("OOMRETRY_RAY_VERSION", "2.60.0")
DEADLINE_S = 420  # for a machine that is busy
HEAD_USER = "nobody"


def ray_bin():
    """The bin directory of a virtual environment with Ray; installs it when it is not there. Root's
    is where the owners of Slurm jobs may enter."""
    home = "/var/cache" if os.geteuid() == 0 else Path.home() / ".cache"
    cache = Path(os.environ.get("XDG_CACHE_HOME", home)) / "oomretry"
    venv = Path(os.environ.get("OOMRETRY_RAY_VENV", cache / f"ray-{RAY_VERSION}"))
    venv.parent.mkdir(parents=True, exist_ok=True)
    with open(venv.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / "complete").exists():
            shutil.rmtree(venv, ignore_errors=True)
            subprocess.run([PYTHON, "-m", "venv", str(venv)], check=True)
            subprocess.run([str(venv / "bin/pip"), "install", "-q", f"ray[default]=={RAY_VERSION}"],
                           check=True)
            (venv / "complete").write_text("")
    return venv / "bin"


def wait_for(ready, what, seconds=DEADLINE_S):
    deadline = time.monotonic() + seconds
    while not (value := ready()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.2)
    return value


def free_port():
    """Outside the ports that the kernel gives to clients, which come and go."""
    for port in range(20000 + os.getpid() % 5000 * 2, 32000):
        if port in free_port.given:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        free_port.given.add(port)
        return port
    raise AssertionError("no free port")


free_port.given = set()


def memory_bytes(name):
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)


def end_processes(directory):
    """Those of a Ray, which name its directory in their arguments."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and directory.encode() in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


class Ray:
    """One head and one worker on this machine, with pretended GPUs. Their memory monitors are off:
    they see the memory of the whole machine, in which other tests run. Where one is on, it kills
    when `margin` more bytes are used than when its node was started."""

    def __init__(self, bin_dir, **env):
        self.bin = bin_dir
        self.temp = Path(tempfile.mkdtemp(prefix="or-"))
        self.temp.chmod(0o755)
        self.gcs, self.port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.margin = min(4 << 30, int(memory_bytes("MemAvailable") * 0.4))
        self.env = env
        self.token = None
        self.processes = []
        self.last_environment = None

    def environment(self):
        total = memory_bytes("MemTotal")
        used = total - memory_bytes("MemAvailable")
        plain = {key: value for key, value in os.environ.items()
                 if not key.startswith(("SLURM", "RAY", "OOMRETRY"))}
        return {**plain, "PATH": f"{self.bin}:{os.environ['PATH']}",
                "RAY_memory_usage_threshold": f"{(used + self.margin) / total:.4f}",
                "RAY_memory_monitor_refresh_ms": "0", "RAY_USAGE_STATS_ENABLED": "0",
                "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "300", "RAY_gcs_server_port_wait_time_s": "300",
                "RAY_enable_worker_prestart": "false", **self.env}

    def spawn(self, name, *options, address="127.0.0.1", **env):
        self.last_environment = {**self.environment(), **env}
        log = open(self.temp / f"{name}.log", "ab")
        self.processes.append(subprocess.Popen(
            [str(self.bin / "ray"), "start", "--block", f"--node-ip-address={address}",
             f"--dashboard-agent-listen-port={free_port()}", "--min-worker-port=0",
             "--max-worker-port=0", "--object-store-memory=100000000", *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.last_environment,
            cwd=self.temp, start_new_session=True))
        log.close()

    def wait_started(self, name, ready):
        """`ray start` gives up after 30 s, which a busy machine may need: then once more."""
        process = self.processes[-1]
        try:
            wait_for(lambda: ready() or process.poll() is not None, f"the node {name}")
            if process.poll() is not None:
                self.processes[-1] = subprocess.Popen(
                    process.args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, env=self.last_environment, cwd=self.temp,
                    start_new_session=True)
                wait_for(ready, f"the node {name}, started twice")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{(self.temp / f'{name}.log').read_text()}") from None

    def second(self, address, temp, **env):
        """One more node, at another address of this machine, as if it were another machine; it has
        the resource named `temp`."""
        former = {node["node_id"] for node in self.nodes()}
        self.spawn(temp, f"--address=127.0.0.1:{self.gcs}", f"--temp-dir={self.temp}/{temp}",
                   "--num-cpus=2", "--num-gpus=1", f'--resources={{"{temp}": 1}}',
                   address=address, **env)
        self.wait_started(temp, lambda: {node["node_id"] for node in self.nodes()} - former)
        return self.processes.pop()

    def nodes(self):
        return self.get("/api/v0/nodes")["data"]["result"]["result"]

    def start(self, worker=True):
        self.spawn("head", "--head", f"--port={self.gcs}", "--dashboard-host=127.0.0.1",
                   f"--dashboard-port={self.port}", f"--temp-dir={self.temp}/r",
                   f"--ray-client-server-port={free_port()}", "--num-cpus=4", "--num-gpus=1",
                   *([] if worker else ['--resources={"worker": 1}']))
        self.wait_started("head", self.alive)
        if worker:
            # A directory of its own: nodes that share one unpack packages over each other.
            self.spawn("worker", f"--address=127.0.0.1:{self.gcs}", f"--temp-dir={self.temp}/w",
                       "--num-cpus=2", "--num-gpus=1", '--resources={"worker": 1}')
            self.wait_started("worker", lambda: len(self.nodes()) == 2)
        return self

    def stop(self):
        """Only what was started here: `ray stop` would end every Ray of the machine."""
        for process in self.processes:
            self.end(process, "")
        self.processes = []

    def end(self, process, temp):
        """A node, at once, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        end_processes(f"{self.temp}/{temp}")

    def remove(self):
        self.stop()
        shutil.rmtree(self.temp, ignore_errors=True)

    # --- its interface ---

    def get(self, path):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(self.url + path, headers=headers)
        for last in (False, False, True):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except (http.client.HTTPException, TimeoutError):
                if last:
                    raise
                time.sleep(1)
        return None

    def has_package(self, uri):
        try:
            with urllib.request.urlopen(f"{self.url}/api/packages/gcs/{uri[len('gcs://'):]}"):
                return True
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
            return False

    def delete_package(self, uri):
        delete = ("import sys; from ray._raylet import GcsClient; print(GcsClient("
                  "address=sys.argv[1]).internal_kv_del(sys.argv[2].encode(), False, None))")
        done = subprocess.run([str(self.bin / "python"), "-c", delete, f"127.0.0.1:{self.gcs}", uri],
                              env=self.environment(), check=True, stdout=subprocess.PIPE, text=True)
        assert done.stdout.strip() == "1" and not self.has_package(uri)

    def alive(self):
        try:
            self.get("/api/jobs/")
            return self.get("/api/version")
        except (OSError, urllib.error.URLError, ValueError):
            return None

    def job(self, submission):
        return self.get(f"/api/jobs/{submission}")

    def logs(self, submission, directory="?"):
        """On either node: the Jobs API itself looks into the head's directory only."""
        return "".join(path.read_text() for path in self.temp.glob(
            f"{directory}/session_2*/logs/job-driver-{submission}.log"))

    def jobs(self):
        return {job["submission_id"]: job for job in self.get("/api/jobs/")
                if job["type"] == "SUBMISSION"}

    def wait(self, submission, *states, seconds=DEADLINE_S):
        """Waits until the job is there and in one of the states; without any: until it has ended."""
        states = states or ("SUCCEEDED", "FAILED", "STOPPED")

        def reached():
            job = self.jobs().get(submission)
            return job if job and job["status"] in states else None
        try:
            return wait_for(reached, f"{submission} to reach {states}", seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{json.dumps(self.jobs(), indent=1)[-6000:]}") from None

    def submit(self, submission, work, *entrypoint, metadata=None, program=None, env_vars=None,
               options=()):
        """`ray job submit` (or what stands for it); does not wait for the job."""
        arguments = ["--address", self.url, "--submission-id", submission, "--working-dir",
                     str(work), "--no-wait", *options]
        if metadata:
            arguments += ["--metadata-json", json.dumps(metadata)]
        if env_vars:
            arguments += ["--runtime-env-json", json.dumps({"env_vars": env_vars})]
        done = subprocess.run([*(program or [str(self.bin / "ray"), "job", "submit"]), *arguments,
                               "--", *entrypoint], env=self.environment(), text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout


class Munge:
    """A munged with a key and a socket of its own."""

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="om-"))
        self.dir.chmod(0o755)
        key = self.dir / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.socket = self.dir / "socket"
        with open(self.dir / "log", "wb") as log:
            self.process = subprocess.Popen(
                ["munged", "--foreground", f"--key-file={key}", f"--socket={self.socket}",
                 f"--pid-file={self.dir}/pid", f"--log-file={self.dir}/munged.log",
                 f"--seed-file={self.dir}/seed", "--num-threads=2"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
        wait_for(self.socket.exists, f"munged ({self.dir}/log)", 20)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Node:
    """oomagent in the node role, as if it were on the machine with that address."""

    def __init__(self, service, address, temp):
        self.dir = Path(tempfile.mkdtemp(prefix="on-"))
        self.dir.chmod(0o755)
        lines = ["role: node", f"node_socket: {self.dir}/node.sock", "head_url: http://127.0.0.1:9",
                 f"node_listen: {address}:{service.agents_port}", f"ray_temp: [{temp}]",
                 "scheduler: none"]
        if os.geteuid() == 0:
            lines.append(f"head_user: {HEAD_USER}")
        config = self.dir / "oomretry.conf"
        config.write_text("\n".join(lines) + "\n")
        with open(self.dir / "log", "ab") as log:
            self.process = subprocess.Popen(
                [str(BUILD / "sbin/oomagent"), "-v", "-c", str(config)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env=service.environment())
        wait_for(lambda: "serving evidence" in self.log(), "the node's port", 20)

    def log(self):
        return (self.dir / "log").read_text()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Service:
    """oomagent in the head role, with its database, watching one dashboard."""

    def __init__(self, ray, *words, munge=None):
        self.munge, self.agents_port = munge, free_port()
        self.dir = Path(tempfile.mkdtemp(prefix="oa-"))
        self.dir.chmod(0o755)
        self.config = self.dir / "oomretry.conf"
        for name in ("db", "tmp"):
            (self.dir / name).mkdir(mode=0o700)
        lines = ["role: head", f"head_socket: {self.dir}/head.sock",
                 f"database: {self.dir}/db/oomretry.db", "ray_clusters:",
                 "  - " + " ".join([ray.url, f"temp={ray.temp}/r",
                                     f"agents={self.agents_port}", *words])]
        if os.geteuid() == 0:
            owner = pwd.getpwnam(HEAD_USER)
            for name in ("db", "tmp"):
                os.chown(self.dir / name, owner.pw_uid, owner.pw_gid)
            lines.append(f"head_user: {HEAD_USER}")
        self.config.write_text("\n".join(lines) + "\n")
        self.process = None

    def environment(self):
        more = {"OOMRETRY_MUNGE_SOCKET": str(self.munge.socket)} if self.munge else {}
        return {**os.environ, "TMPDIR": str(self.dir / "tmp"), **more}

    def start(self, *under):
        with open(self.dir / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*under, str(BUILD / "sbin/oomagent"), "-v", "-c", str(self.config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment())
        wait_for((self.dir / "head.sock").exists, "the head's socket", 20)
        return self

    def kill(self):
        """At once, with its children (which end with it)."""
        self.process.kill()
        self.process.wait()
        (self.dir / "head.sock").unlink()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def log(self):
        return (self.dir / "log").read_text()

    def oomctl(self, *arguments):
        done = subprocess.run([str(BUILD / "bin/oomctl"), *arguments], text=True, check=False,
                              env={**os.environ, "OOMRETRY_CONFIG": str(self.config)},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}\n{self.log()}"
        return done.stdout

    def story(self, submission):
        return json.loads(self.oomctl("history", "--json", submission))

    def lineages(self):
        return json.loads(self.oomctl("history", "--json", "--all"))["lineages"]

    def wait(self, submission, *states, seconds=DEADLINE_S):
        """Waits for a state of the submission's lineage; returns its story."""
        def reached():
            if not any(submission in line["jobs"] for line in self.lineages()):
                return None
            story = self.story(submission)
            return story if story["lineage"]["state"] in states else None
        try:
            return wait_for(reached, f"the lineage of {submission} to be {states}", seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.log()}") from None
