# SPDX-License-Identifier: Apache-2.0
"""The ended attempt's GPU memory is waited for; a nvidia-smi of the test says who holds some."""
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from again import Place, place  # noqa: F401

# Says what is in the file "held" (lines "PID, MIB"), and after three looks nothing any more.
SMI = '''#!/bin/bash
echo "$*" >> HERE/looks
[ "$(wc -l < HERE/looks)" -gt 3 ] && ! [ -e HERE/for-ever ] && exit 0
cat HERE/held
'''
# No process has it: pids end at 4194304.
GONE = '4194400, 1024\n'


@pytest.fixture
def smi(place, tmp_path_factory):  # noqa: F811
    return install(place, tmp_path_factory.mktemp('smi'))


def install(place, home):  # noqa: F811
    if os.geteuid() != 0:
        pytest.skip('a program that belongs to root')
    home.chmod(0o755)
    program = home / 'nvidia-smi'
    program.write_text(SMI.replace('HERE', str(place.path)))
    program.chmod(0o755)
    (place.path / 'no.conf').write_text('head_socket: /nonexistent/head.sock\n'
                                        f'nvidia_smi: {program}\ngpu_wait_s: 8\n')
    return program


def looks(place):  # noqa: F811
    path = place.path / 'looks'
    return path.read_text().splitlines() if path.exists() else []


def test_waits_until_it_is_free(place, smi):  # noqa: F811
    place.write(held=GONE)
    status, output = place.run(env={'CUDA_VISIBLE_DEVICES': '2,3'})
    assert status == 0, output
    assert looks(place) == ['--query-compute-apps=pid,used_memory '
                            '--format=csv,noheader,nounits -i 2,3'] * 4


def test_waits_a_bounded_time(place, smi):  # noqa: F811
    place.write(**{'held': GONE, 'for-ever': ''})
    (place.path / 'no.conf').write_text((place.path / 'no.conf').read_text().replace('8', '1'))
    status, output = place.run(env={'CUDA_VISIBLE_DEVICES': '0'})
    assert status == 0, output
    assert 'holds memory' not in output


def test_somebody_else_is_named(place, smi):  # noqa: F811
    """By hand there is nowhere to go."""
    place.write(**{'held': f'{os.getpid()}, 4096\n', 'for-ever': ''})
    status, output = place.run(env={'CUDA_VISIBLE_DEVICES': '0'})
    assert status == 0, output
    assert f'process {os.getpid()} (' in output and 'no other node' in output


def test_somebody_else_is_hidden():
    """/proc does not show the processes of others to this owner."""
    hidden = ['unshare', '-m', 'sh', '-c', 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', 'sh',
              'setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    home = Path(tempfile.mkdtemp(prefix='oomretry-test-'))
    try:
        home.chmod(0o755)
        for name in 'place', 'smi':
            (home / name).mkdir()
        theirs = Place(home / 'place')
        install(theirs, home / 'smi')
        if subprocess.run([*hidden, 'true'], check=False).returncode != 0:
            pytest.skip('no /proc can be mounted')
        theirs.write(**{'held': f'{os.getpid()}, 4096\n', 'for-ever': ''})
        os.chown(theirs.path, 65534, -1)
        status, output = theirs.run(env={'CUDA_VISIBLE_DEVICES': '0'}, under=hidden)
        assert status == 0 and f'process {os.getpid()} holds' in output, output
    finally:
        shutil.rmtree(home)


@pytest.mark.parametrize('why', ['absent', 'not of root', 'writable', 'shared card', 'fails'])
def test_not_asked(place, smi, why):  # noqa: F811
    place.write(**{'held': GONE, 'for-ever': ''})
    env = {'CUDA_VISIBLE_DEVICES': '0'}
    if why == 'absent':
        smi.unlink()
    elif why == 'not of root':
        os.chown(smi, 65534, -1)
    elif why == 'writable':
        smi.chmod(0o777)
    elif why == 'shared card':
        env['CUDA_MPS_PIPE_DIRECTORY'] = '/tmp/mps'
    else:
        smi.write_text(SMI.replace('HERE', str(place.path)) + 'exit 9\n')
    began = time.monotonic()
    status, output = place.run(env=env)
    assert status == 0, output
    assert len(looks(place)) == (1 if why == 'fails' else 0)
    assert time.monotonic() - began < 7
