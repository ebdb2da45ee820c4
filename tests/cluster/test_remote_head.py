# SPDX-License-Identifier: Apache-2.0
"""A head on another machine, as nodes and users see it: TCP, and nobody is believed but the head."""
import contextlib
import http.server
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

import kinds
from conftest import wait_for

HEAD_USER = "daemon"
OTHER = pwd.getpwnam("games")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class RemoteHead:
    """Its own agent, and that of a node."""

    def __init__(self, cluster, home):
        self.cluster, self.home, self.port = cluster, home, free_port()
        self.munge = cluster.dir / "munge.socket"
        self.node_conf, self.head_conf = home / "node.conf", home / "head.conf"
        self.node_conf.write_text(f"role: node\nhead_url: http://127.0.0.1:{self.port}\n"
                                  f"munge_socket: {self.munge}\n"
                                  f"head_user: {HEAD_USER}\nnode_socket: {home}/node.sock\n")
        self.head_conf.write_text(f"role: head\nmunge_socket: {self.munge}\nhead_listen: 127.0.0.1:{self.port}\n"
                                  f"head_user: {HEAD_USER}\nhead_socket: {home}/head.sock\n"
                                  f"database: {home}/db/oomretry.db\n")
        self.agents = []

    def start(self, conf, ready):
        log = open(self.home / (conf.stem + ".log"), "w")
        self.agents.append(subprocess.Popen(
            [self.cluster.prefix / "sbin/oomagent"], stdout=log, stderr=log, start_new_session=True,
            env=self.cluster.environment({"OOMRETRY_CONFIG": str(conf)})))
        wait_for(ready, f"the agent of {conf}")

    def answers(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True

    def oomctl(self, *arguments):
        return self.cluster.run(self.cluster.prefix / "bin/oomctl", *arguments,
                                env={"OOMRETRY_CONFIG": str(self.node_conf)})


@pytest.fixture
def remote(cluster):
    home = Path(tempfile.mkdtemp(prefix="remote-", dir=cluster.dir.parent))
    home.chmod(0o755)
    one = RemoteHead(cluster, home)
    yield one
    for agent in one.agents:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
    shutil.rmtree(home)


@pytest.mark.parametrize("mode", ["auto", "requeue", "resubmit"])
def test_a_job_is_retried(cluster, remote, work, script, mode):
    remote.start(remote.head_conf, remote.answers)
    remote.start(remote.node_conf, (remote.home / "node.sock").exists)
    path, memory = kinds.write_job(work, script, "gpu")
    line = cluster.plugin_line(site=f"config={remote.node_conf}", agent_socket=remote.home / "node.sock")
    with cluster.plugstack(line):
        job = cluster.sbatch(work, "--oom-retry=relax", f"--oom-mode={mode}", f"--mem={memory}", path)
        story = wait_for(lambda: (got := json.loads(remote.oomctl(
            "history", job.id, "--json").stdout or "{}")) and
            got["lineage"]["state"] == "completed" and got, "the lineage to end", 60, 0.4)
    assert [attempt["mode"] for attempt in story["attempts"]] == [
        "first", "inplace" if mode == "auto" else mode], job.output()


def test_a_lost_supervisor_is_found(cluster, remote, work, script):
    """By the node's agent, which hands the job's owner what he needs to reach head and MUNGE."""
    remote.start(remote.head_conf, remote.answers)
    remote.start(remote.node_conf, (remote.home / "node.sock").exists)
    path, memory = kinds.write_job(work, script, "oomrun killed")
    line = cluster.plugin_line(site=f"config={remote.node_conf}", agent_socket=remote.home / "node.sock")
    with cluster.plugstack(line):
        job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", path)
        job.wait("COMPLETED", seconds=90)
    assert len(kinds.runs(work)) == 2


class Impostor(http.server.BaseHTTPRequestHandler):
    """Whoever listens at the head's port while the head is away."""

    answer = None

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = type(self).answer(asked).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.mark.parametrize("kind", ["plain", "sealed", "replayed"])
def test_nobody_else_is_taken_for_the_head(cluster, remote, kind):
    lie = json.dumps({"lineages": [], "attempts": []})

    def seal(text, user):
        done = subprocess.run(["munge", "-S", remote.munge], input=text, text=True, check=True,
                              stdout=subprocess.PIPE, user=user, group=user, extra_groups=[])
        return done.stdout

    def answer(asked):
        if kind == "plain":
            return lie
        nonce = "0" * 32
        if kind == "sealed":
            opened = subprocess.run(["unmunge", "-S", remote.munge, "-m", "/dev/null"], input=asked, text=True,
                                    check=True, stdout=subprocess.PIPE).stdout
            nonce = opened.split("\n")[0].split()[-1]
        return seal(f"{nonce} 0 1 200\n{lie}", OTHER.pw_uid if kind == "sealed" else 0)
    Impostor.answer = staticmethod(answer)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", remote.port), Impostor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = remote.oomctl("history")
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 2, done
    assert {"plain": "no answer from", "sealed": f"uid {OTHER.pw_uid} answered",
            "replayed": "to another question"}[kind] in done.stderr


def test_a_long_answer_comes_in_pieces(cluster, remote):
    remote.start(remote.head_conf, remote.answers)
    name = "n" * 200
    for job in range(1, 46):
        body = {"scheduler": "slurm", "cluster": "c", "job": str(job), "token": "t", "restart": 0,
                "name": name, "node": "n1", "options": {"policy": "auto", "filler": "x" * 15000}}
        done = cluster.run("curl", "-sS", "--unix-socket", remote.home / "head.sock", "-d", "@-",
                           "http://localhost/v1/attempts/begin", text_in=json.dumps(body))
        assert '"lineage"' in done.stdout, done
    rows = json.loads(remote.oomctl("history", "--json").stdout)
    assert len(rows["lineages"]) == 45
