# SPDX-License-Identifier: Apache-2.0
"""Shared memory that an attempt's libraries left is gone before the next one begins."""
import mmap
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from again import place  # noqa: F401
from programs import OOMRUN

SHM = Path('/dev/shm')


@pytest.fixture
def files():
    """Names that nobody else has; whatever is left of them goes away."""
    tag = f'oomretry{os.getpid()}'
    names = {'torch': SHM / f'torch_{tag}_1_0', 'nccl': SHM / f'nccl-{tag}',
             'python': SHM / f'psm_{tag}', 'data': SHM / f'{tag}.tar', 'used': SHM / f'psm_u{tag}',
             'old': SHM / f'torch_{tag}_2_0'}
    yield names
    for path in names.values():
        path.unlink(missing_ok=True)


def left(files):
    return {name for name, path in files.items() if path.exists()}


def make_used(files):
    """A file of a live process, which has closed it and only maps it."""
    files['used'].write_bytes(b'x' * 4096)
    fd = os.open(files['used'], os.O_RDWR)
    memory = mmap.mmap(fd, 4096)
    os.close(fd)
    return memory


def test_is_gone_before_the_next_attempt(place, files):  # noqa: F811
    names = ' '.join(str(files[name]) for name in ('torch', 'nccl', 'python', 'data', 'used'))
    place.write(after=f'[ -e made ] || echo x | tee {names} > made',
                before=f'ls {names} > seen 2>/dev/null')
    memory = make_used(files)
    with memory:
        status, output = place.run()
        assert status == 0, output
        assert left(files) == {'data', 'used'}
    seen = (place.path / 'seen').read_text().split()
    assert set(seen) == {str(files['data']), str(files['used'])}


USER = """
import mmap, os, sys, time
files = dict(word.split("=", 1) for word in sys.argv[2:])
open(files["old"], "w").write("of before")
time.sleep(2.5)
since_ms = int(time.time() * 1000)
for name in "torch", "nccl", "python", "data", "used":
    open(files[name], "wb").write(b"x" * 4096)
fd = os.open(files["used"], os.O_RDWR)
memory = mmap.mmap(fd, 4096)
os.close(fd)
os.waitpid(os.spawnl(os.P_NOWAIT, sys.argv[1], sys.argv[1], "--slurm", "--look", str(since_ms)), 0)
"""


def look(oomrun, files):
    return subprocess.run(['/usr/bin/python3', '-c', USER, oomrun, *map('='.join, (
        (name, str(path)) for name, path in files.items()))], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=True, cwd='/', env={'PATH': '/usr/bin:/bin'},
        user=61234 if os.geteuid() == 0 else None)


def test_on_another_node_of_the_job(files):
    """What oomrun starts there. As a user of whom nothing else runs here: an attempt of his that
    began earlier would take the old file for its own."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        done = look(shutil.copy(OOMRUN, place), files)
    assert left(files) == {'old', 'data', 'used'}
    assert done.stdout == ''
