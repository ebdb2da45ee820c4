# SPDX-License-Identifier: Apache-2.0
"""Shared memory that an attempt's libraries left is gone before the next one begins."""
import mmap
import os
import subprocess
import time
from pathlib import Path

import pytest

from again import OOMRUN, place  # noqa: F401

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
    files['old'].write_text('of before')
    time.sleep(2.5)
    names = ' '.join(str(files[name]) for name in ('torch', 'nccl', 'python', 'data', 'used'))
    place.write(after=f'[ -e made ] || echo x | tee {names} > made',
                before=f'ls {names} > seen 2>/dev/null')
    memory = make_used(files)
    with memory:
        status, output = place.run()
        assert status == 0, output
        assert left(files) == {'old', 'data', 'used'}
    seen = (place.path / 'seen').read_text().split()
    assert set(seen) == {str(files['data']), str(files['used'])}


def test_on_another_node_of_the_job(files):
    """What oomrun starts there."""
    files['old'].write_text('of before')
    time.sleep(2.5)
    since_ms = int(time.time() * 1000)
    for name in 'torch', 'nccl', 'python', 'data':
        files[name].write_text('x')
    with make_used(files):
        done = subprocess.run([OOMRUN, '--slurm', '--look', str(since_ms)], capture_output=True,
                              text=True, check=True, env={'PATH': '/usr/bin:/bin'})
    assert left(files) == {'old', 'data', 'used'}
    assert done.stdout == done.stderr == ''
