# SPDX-License-Identifier: Apache-2.0
"""oomrun never in the way: bytes that are not text, readers that go or wait, scripts without bound.

What a shell pipeline, a terminal or a full disk does to a command, it does to the same command
under oomrun.
"""
import json
import os
import signal
import subprocess
import time

import pytest

from programs import OOMCTL, OOMRUN

OOM = ('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity '
       'of 79.15 GiB of which 1.02 GiB is free.')
TRAINER = f'''#!/usr/bin/python3
import os, sys
args = sys.argv[1:]
sys.stdout.buffer.write(b"caf\\xe9 " + os.fsencode(" ".join(args)) + b"\\n")
if "4" in args[args.index("--micro-batch-size") + 1]:
    print({OOM!r})
    sys.exit(1)
print("done")
'''
SCRIPT = b'''#!/bin/bash
# caf\xe9
NAME="caf\xe9"
python3 pretrain_gpt.py --name "$NAME" --recompute-granularity full --recompute-method uniform \\
    --recompute-num-layers 1 --micro-batch-size 4 --global-batch-size 16
'''


@pytest.fixture
def place(tmp_path):
    bin_dir = tmp_path / 'bin'
    bin_dir.mkdir()
    (bin_dir / 'python3').write_text(TRAINER)
    (bin_dir / 'python3').chmod(0o755)
    (tmp_path / 'train.sh').write_bytes(SCRIPT)
    env = {'PATH': f'{bin_dir}:/usr/bin:/bin', 'HOME': str(tmp_path), 'LANG': 'C.UTF-8',
           'OOMRETRY_CONFIG': str(tmp_path / 'config.yaml'), 'TMPDIR': str(tmp_path)}
    (tmp_path / 'config.yaml').write_text(f'head_socket: {tmp_path}/none.sock\n')
    return tmp_path, env


def run(place, *command, options=(), **kwargs):
    directory, env = place
    return subprocess.run([OOMRUN, *options, '--', *command], cwd=directory, env={**env, **kwargs.pop('more_env', {})},
                          capture_output=True, timeout=60, **kwargs)


def history(place):
    directory, env = place
    out = subprocess.run([OOMCTL, 'history', '--json'], cwd=directory, env=env, capture_output=True, check=True)
    found = json.loads(out.stdout)
    return found['lineages'] if isinstance(found, dict) else found


# --- bytes that are not UTF-8 ---------------------------------------------------------------------

def test_latin_1_everywhere_is_no_reason_not_to_retry(place):
    directory, _ = place
    script = os.fsencode(directory) + b'/caf\xe9.sh'
    with open(script, 'wb') as file:
        file.write(SCRIPT)
    result = run(place, 'bash', script, b'arg\xe9', options=['--name', b'r\xe9sum\xe9'])
    assert result.returncode == 0, result.stderr
    assert b'caf\xe9 pretrain_gpt.py --name caf\xe9' in result.stdout
    assert result.stdout.count(b'caf\xe9 pretrain') == 2
    assert result.stdout.endswith(b'done\n')
    assert [line['name'] for line in history(place)] == ['r?sum?']
    explained = subprocess.run([OOMCTL, 'explain', 'L1'], cwd=directory, env=place[1], capture_output=True)
    assert explained.returncode == 0 and b'-micro-batch-size 4' in explained.stdout.replace(b'+ ', b'+')


def test_a_log_of_any_bytes_is_read_and_relayed(place):
    directory, _ = place
    noise = bytes(range(256)) * 300
    (directory / 'noise').write_bytes(noise)
    (directory / 'train.sh').write_bytes(SCRIPT.replace(b'NAME=', b'cat noise\nNAME='))
    result = run(place, 'bash', 'train.sh')
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(noise) == 2


# --- readers of the output ------------------------------------------------------------------------

def test_a_reader_that_goes_ends_the_command_by_sigpipe(place):
    directory, env = place
    began = time.monotonic()
    result = subprocess.run(['bash', '-c', '"$0" -- yes | head -1; exit ${PIPESTATUS[0]}', OOMRUN],
                            cwd=directory, env=env, capture_output=True, timeout=20)
    assert result.stdout == b'y\n'
    assert result.returncode == 128 + signal.SIGPIPE
    assert time.monotonic() - began < 15


def test_a_reader_that_waits_does_not_hold_signals_up(place):
    directory, env = place
    process = subprocess.Popen([OOMRUN, '--', 'yes'], cwd=directory, env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        assert process.stdout.read(2) == b'y\n'
        time.sleep(0.5)  # the pipe is full now
        process.terminate()
        assert process.wait(10) == -signal.SIGTERM
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_a_slow_reader_gets_every_byte(place):
    directory, env = place
    data = os.urandom(3_000_000)
    (directory / 'data').write_bytes(data)
    process = subprocess.Popen([OOMRUN, '--', 'cat', 'data'], cwd=directory, env=env, stdout=subprocess.PIPE)
    time.sleep(1)
    assert process.stdout.read() == data
    process.stdout.close()
    assert process.wait(10) == 0


def test_an_orphan_that_writes_for_ever_does_not_keep_oomrun(place):
    directory, _ = place
    try:
        result = run(place, 'bash', '-c', 'yes & echo $! >&2; sleep 0.1; exit 3', stdin=subprocess.DEVNULL)
        assert result.returncode == 3
        to_file = subprocess.run([OOMRUN, '--', 'bash', '-c', 'yes & echo $! >&2; sleep 0.1; exit 3'],
                                 cwd=directory, env=place[1], stdout=open(directory / 'log', 'wb'),
                                 stderr=subprocess.PIPE, timeout=60)
        assert to_file.returncode == 3
    finally:
        for line in (result.stderr + to_file.stderr).split():
            if line.isdigit():
                try:
                    os.kill(int(line), signal.SIGKILL)
                except ProcessLookupError:
                    pass


# --- the command's surroundings are as without oomrun ---------------------------------------------

SHOW = 'grep -E "^Sig(Ign|Blk)" /proc/self/status; ls /proc/self/fd | tr "\\n" " "; umask; env | grep ^OOM'


@pytest.mark.parametrize('ignored', [False, True])
def test_signals_and_descriptors_are_inherited(place, ignored):
    directory, env = place

    def ignore():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL)

    def seen(*prefix):
        result = subprocess.run([*prefix, 'bash', '-c', SHOW], cwd=directory, env=env, stdin=subprocess.DEVNULL,
                                capture_output=True, restore_signals=False, preexec_fn=ignore)
        return result.stdout.decode().replace('OOMRETRY_ATTEMPT=1\n', '')

    assert seen(OOMRUN, '--') == seen()
    # Also when nothing can be supervised.
    env['OOMRETRY_SIGNATURES'] = str(directory / 'train.sh')
    unsupervised = subprocess.run([OOMRUN, '--', 'true'], cwd=directory, env=env, capture_output=True)
    assert b'runs unsupervised' in unsupervised.stderr and unsupervised.returncode == 0
    assert seen(OOMRUN, '--') == seen()


def test_closed_descriptors_stay_the_commands_own(place):
    directory, env = place
    result = subprocess.run(['bash', '-c', '"$0" -- bash -c "ls /proc/self/fd/0 || echo closed" <&-', OOMRUN],
                            cwd=directory, env=env, capture_output=True, timeout=60)
    plain = subprocess.run(['bash', '-c', 'bash -c "ls /proc/self/fd/0 || echo closed" <&-'],
                           cwd=directory, env=env, capture_output=True, timeout=60)
    assert (result.returncode, result.stdout) == (plain.returncode, plain.stdout)
    result = subprocess.run(['bash', '-c', '"$0" -- bash -c "exit 7" >&- 2>&- <&-', OOMRUN], cwd=directory, env=env,
                            timeout=60)
    assert result.returncode == 7


def test_the_command_line_goes_over_the_environment(place):
    result = run(place, 'bash', 'train.sh', options=['--max-retries', '0'],
                 more_env={'OOMRETRY_MAX_RETRIES': '3'})
    assert result.returncode == 1
    assert history(place)[0]['attempts'] == 1 or len(history(place)[0]['attempts']) == 1


# --- places that cannot be written, and scripts without bound -------------------------------------

def test_a_script_larger_than_can_be_rewritten_is_never_cut(place):
    directory, _ = place
    (directory / 'huge.sh').write_bytes(SCRIPT + b'# ' + b'x' * (9 << 20) + b'\necho the end\n')
    result = run(place, 'bash', 'huge.sh')
    # Every attempt ran the whole script.
    attempts = result.stdout.count(b'caf\xe9 pretrain')
    assert attempts >= 1
    assert result.stdout.count(b'the end') == attempts
    assert b'unrecognized option' not in result.stderr


def test_a_script_that_cannot_be_read_is_not_run_again_as_it_was(place):
    """What follows the script of an archive that unpacks itself: a change has nowhere to go."""
    directory, env = place
    oom = OOM + (' Of the allocated memory 66.50 GiB is allocated by PyTorch, and 10.00 GiB is reserved by '
                 'PyTorch but unallocated.')
    (directory / 'unpacks.sh').write_bytes(f'#!/bin/bash\necho started\necho "{oom}"\nexit 1\n'.encode() +
                                           b'\0payload\n')
    result = run(place, 'bash', 'unpacks.sh')
    assert (result.returncode, result.stdout.count(b'started')) == (1, 1)
    assert b'not retried' in result.stderr
    told = subprocess.run([OOMCTL, 'explain', 'L1'], cwd=directory, env=env, capture_output=True, check=True)
    assert b'holds a NUL byte' in told.stdout


def test_no_home_and_no_place_for_state(place):
    directory, env = place
    env = {key: value for key, value in env.items() if key not in ('HOME',)}
    env['XDG_STATE_HOME'] = '/proc/nowhere'
    env['TMPDIR'] = '/proc'
    result = subprocess.run([OOMRUN, '--db', '/proc/nowhere/x.db', '--', 'bash', '-c', 'echo works; exit 5'],
                            cwd=directory, env=env, capture_output=True, timeout=60)
    assert (result.returncode, result.stdout) == (5, b'works\n')
    assert b'/proc/nowhere/x.db' in result.stderr


# --- many at once, and variables that say nothing -------------------------------------------------

def test_containers_are_told_apart(place):
    """In a container of its own each is process 1, and all of them begin in the same second."""
    directory, env = place
    (directory / 'ends.sh').write_text('sleep 0.5\n')
    runs = [subprocess.Popen(['unshare', '-pf', '--mount-proc', OOMRUN, '--', 'bash', 'ends.sh'], cwd=directory,
                             env=env, stderr=subprocess.PIPE) for _ in range(4)]
    assert [process.wait(60) for process in runs] == [0] * 4, [process.stderr.read() for process in runs]
    assert [line['attempts'] for line in history(place)] == [1] * 4


@pytest.mark.parametrize('variable,value', [('MODE', 'inplce'), ('MAX_RETRIES', 'three'), ('MAX_RETRIES', '-1'),
                                            ('ALLOW', 'all'), ('GRACE_S', '2m')])
def test_a_variable_that_says_nothing_is_said_and_ignored(place, variable, value):
    result = run(place, 'bash', 'train.sh', more_env={'OOMRETRY_' + variable: value})
    assert f'OOMRETRY_{variable} '.encode() in result.stderr and b'ignored' in result.stderr
    assert result.stdout.count(b'caf\xe9 pretrain') == 2 and result.returncode == 0


def test_a_command_without_measure_has_a_name_with_one(place):
    result = run(place, 'env', 'X=' + 'x' * 100000, 'bash', 'train.sh')
    assert result.stdout.count(b'caf\xe9 pretrain') == 2 and result.returncode == 0, result.stderr
