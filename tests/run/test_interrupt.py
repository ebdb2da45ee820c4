# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C between two attempts, when there is no command that could get it."""
import contextlib
import json
import os
import pty
import select
import signal
import sqlite3
import subprocess
import time

import pytest

from test_robust import OOMCTL, OOMRUN, SCRIPT, TRAINER

# Leaves a process that does not heed SIGTERM, so that the next attempt waits a while.
LEAVES = b'/bin/bash -c "trap \'\' TERM; sleep 60" &\n'


@pytest.fixture
def place(tmp_path):
    bin_dir = tmp_path / 'bin'
    bin_dir.mkdir()
    (bin_dir / 'python3').write_text(TRAINER.replace('print("done")', 'import time; time.sleep(3); print("done")'))
    (bin_dir / 'python3').chmod(0o755)
    (tmp_path / 'train.sh').write_bytes(SCRIPT.replace(b'python3 ', LEAVES + b'python3 ', 1))
    (tmp_path / 'config.yaml').write_text(f'head_socket: {tmp_path}/none.sock\n')
    return tmp_path


@contextlib.contextmanager
def on_a_terminal(place, ignored=signal.SIG_DFL):
    env = {'PATH': f'{place}/bin:/usr/bin:/bin', 'HOME': str(place), 'OOMRETRY_CONFIG': str(place / 'config.yaml')}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place)
        signal.signal(signal.SIGINT, ignored)
        os.execve(OOMRUN, [OOMRUN, '--db', str(place / 'db'), '--', 'bash', 'train.sh'], env)
    try:
        yield terminal
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.close(terminal)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def read_until(terminal, wanted, seconds=30):
    """What it says until it says that, or (None) ends."""
    text, deadline = b'', time.monotonic() + seconds
    while time.monotonic() < deadline and (wanted is None or wanted not in text):
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        text += chunk
    return text


def test_nothing_is_started_any_more(place):
    with on_a_terminal(place) as terminal:
        read_until(terminal, b'starts now')
        os.write(terminal, b'\x03')
        rest = read_until(terminal, None)
    assert b'told to end by signal 2' in rest
    assert b'done' not in rest
    told = subprocess.run([OOMCTL, 'explain', 'L1', '--db', place / 'db'], capture_output=True, text=True, check=True)
    assert 'Attempt 2  never began' in told.stdout and 'would have run with' in told.stdout
    listed = subprocess.run([OOMCTL, 'history', '--json', '--db', place / 'db'], capture_output=True, check=True)
    assert json.loads(listed.stdout)['lineages'][0]['attempts'] == 1


def test_the_next_command_gets_what_came_before_it(place):
    with on_a_terminal(place) as terminal:
        read_until(terminal, b'starts now')
        book = sqlite3.connect(place / 'db', isolation_level=None)
        book.execute('BEGIN IMMEDIATE')  # the start of the next attempt cannot be stored
        time.sleep(2.5)
        os.write(terminal, b'\x03')
        time.sleep(0.3)
        book.execute('ROLLBACK')
        book.close()
        rest = read_until(terminal, None)
    assert b'done' not in rest


def test_what_is_ignored_ends_nothing(place):
    """In the background of a script, or under nohup: the command ignores it, too."""
    with on_a_terminal(place, signal.SIG_IGN) as terminal:
        read_until(terminal, b'starts now')
        os.write(terminal, b'\x03')
        rest = read_until(terminal, None)
    assert b'told to end' not in rest and b'done' in rest
