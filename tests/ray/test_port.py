# SPDX-License-Identifier: Apache-2.0
"""What a node's agent gives to the network: no Ray is needed for it, only a directory like Ray's,
with traps that its owner has laid."""
import http.client
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ray_harness import HEAD_USER, Munge, Node, free_port

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="acting for several users needs root")
OWNER = pwd.getpwnam("daemon")
SESSION = "session_2026-01-01_00-00-00_000000_1"


class Asker:
    """Stands for the service that knows the port and where munged is."""

    def __init__(self):
        self.munge, self.agents_port = Munge(), free_port()

    def environment(self):
        return {**os.environ, "OOMRETRY_MUNGE_SOCKET": str(self.munge.socket)}

    def program(self, *words, user="root", text=b""):
        return subprocess.run(["setpriv", f"--reuid={user}", "--clear-groups", *words], input=text,
                              check=True, stdout=subprocess.PIPE).stdout

    def raw(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.agents_port, timeout=60)
        connection.request("POST", "/", body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def ask(self, route, user="root", **question):
        text = f"POST {route}\n" + json.dumps({"nonce": "n1", "session": SESSION, **question})
        return self.raw(self.program("munge", f"--socket={self.munge.socket}", user=user,
                                     text=text.encode()).strip())

    def pieces(self, answer):
        """[(name, bytes)], the last one with an empty name when the answer is whole."""
        out = []
        for n, line in enumerate(answer.splitlines()):
            inside = self.program("unmunge", f"--socket={self.munge.socket}", "--metadata=/dev/null",
                                  text=line.encode())
            head, _, rest = inside.partition(b"\n")
            head = json.loads(head)
            assert (head["nonce"], head["n"]) == ("n1", n)
            out.append((head["name"], rest))
        return out


@pytest.fixture(scope="module")
def place():
    home = Path(tempfile.mkdtemp(prefix="op-"))
    home.chmod(0o755)
    logs = home / "ray" / SESSION / "logs"
    package = home / "ray" / SESSION / "runtime_resources/working_dir_files/_ray_pkg_1"
    logs.mkdir(parents=True)
    package.mkdir(parents=True)
    secret = home / "secret"
    secret.write_text("root's alone\n")
    secret.chmod(0o600)
    (logs / "worker-a-02000000-1.err").write_text("torch.OutOfMemoryError: of job 2\n")
    (logs / "worker-b-03000000-2.err").write_text("of job 3\n")
    (logs / "worker-c-02000000-3.out").write_bytes(b"x" * 700000 + b"\nlast line\xff\n")
    (logs / "worker-d-02000000-4.err").symlink_to(secret)
    os.link(secret, logs / "worker-e-02000000-5.err")
    os.mkfifo(logs / "worker-f-02000000-6.err")
    (logs / "raylet.out").write_text("")
    (logs / "job-driver-raysubmit_1.log").write_text("Traceback\n")
    (logs / "job-driver-secret.log").symlink_to(secret)
    (package / "run.sh").write_text("echo\n")
    (package / "secret").symlink_to(secret)
    for path in [home / "ray", *(home / "ray").rglob("*")]:
        if not path.is_symlink() and path.stat().st_ino != secret.stat().st_ino:
            os.chown(path, OWNER.pw_uid, OWNER.pw_gid)
    (home / "ray").chmod(0o700)
    yield home
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def asker(place):
    one = Asker()
    node = Node(one, "127.0.0.1", place / "ray")
    try:
        yield one
    finally:
        node.stop()
        one.munge.stop()


def test_logs_of_one_job(asker):
    status, answer = asker.ask("/v1/ray/logs", job="02000000")
    assert status == 200
    pieces = asker.pieces(answer)
    assert pieces[-1] == ("", b"")
    found = dict(pieces[:-1])
    assert set(found) == {"worker-a-02000000-1.err", "worker-c-02000000-3.out"}
    assert found["worker-a-02000000-1.err"] == b"torch.OutOfMemoryError: of job 2\n"
    assert found["worker-c-02000000-3.out"] == b"last line\xff\n"


def test_log_of_a_driver(asker):
    status, answer = asker.ask("/v1/ray/driver", submission="raysubmit_1")
    assert status == 200
    assert asker.pieces(answer) == [("job-driver-raysubmit_1.log", b"Traceback\n"), ("", b"")]
    assert asker.ask("/v1/ray/driver", submission="secret") == (200, "")


def test_a_package(asker):
    status, answer = asker.ask("/v1/ray/package", package="_ray_pkg_1")
    pieces = asker.pieces(answer)
    assert status == 200 and pieces[-1] == ("", b"")
    assert b"run.sh" in pieces[0][1] and b"secret" not in pieces[0][1]


def test_only_the_asker_can_read_it(asker):
    _, answer = asker.ask("/v1/ray/logs", job="02000000")
    with pytest.raises(subprocess.CalledProcessError):
        asker.program("unmunge", f"--socket={asker.munge.socket}", user=HEAD_USER,
                      text=answer.splitlines()[0].encode())


@pytest.mark.parametrize("question, user, status", [
    ({"route": "/v1/ray/logs", "job": "02000000"}, "daemon", 403),
    ({"route": "/v1/ray/logs", "job": "02000000"}, HEAD_USER, 200),
    ({"route": "/v1/ray/logs", "job": "../../secret"}, "root", 400),
    ({"route": "/v1/ray/logs", "job": "*"}, "root", 400),
    ({"route": "/v1/ray/logs", "job": "02000000", "session": "../.."}, "root", 400),
    ({"route": "/v1/ray/driver", "submission": "x/../../../secret"}, "root", 400),
    ({"route": "/v1/ray/package", "package": "../logs"}, "root", 400),
    ({"route": "/v1/ray/package", "package": ""}, "root", 400),
    ({"route": "/v1/history", "job": "02000000"}, "root", 400),
])
def test_who_may_ask_for_what(asker, question, user, status):
    assert asker.ask(user=user, **question)[0] == status


def test_a_session_that_is_not_here(asker):
    assert asker.ask("/v1/ray/logs", job="02000000", session="session_0") == (200, "")
    assert asker.ask("/v1/ray/package", package="_ray_pkg_2") == (200, "")


def test_no_credential(asker):
    assert asker.raw(b"POST /v1/ray/logs\n{}")[0] == 401
    once = asker.program("munge", f"--socket={asker.munge.socket}",
                         text=b'POST /v1/ray/logs\n{"session":"session_0","job":"02"}').strip()
    assert [asker.raw(once)[0], asker.raw(once)[0]] == [200, 401]
