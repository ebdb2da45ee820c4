# SPDX-License-Identifier: Apache-2.0
"""What the shell allows a job, and what the machine does to it: a file that may not grow, a full disk,
a directory that is not there, standard descriptors that are closed, a clock that is set."""
import os
import pwd
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from programs import BUILD, OOMCTL, OOMRUN, ROOT

OOM = ('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity '
       'of 79.15 GiB of which 1.02 GiB is free.')
SCRIPT = '''#!/bin/bash
python3 pretrain_gpt.py --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \\
    --micro-batch-size 4 --global-batch-size 16
'''


@pytest.fixture
def place(tmp_path):
    (tmp_path / 'config.yaml').write_text(f'head_socket: {tmp_path}/none.sock\n')
    env = {'PATH': f'{tmp_path}/bin:/usr/bin:/bin', 'HOME': str(tmp_path), 'LANG': 'C.UTF-8',
           'OOMRETRY_CONFIG': str(tmp_path / 'config.yaml'), 'TMPDIR': str(tmp_path)}
    return tmp_path, env


def run(place, *words, **kwargs):
    directory, env = place
    return subprocess.run(words, cwd=directory, env={**env, **kwargs.pop('more_env', {})}, text=True,
                          stdout=kwargs.pop('stdout', subprocess.PIPE), stderr=subprocess.PIPE, timeout=60,
                          **kwargs)


def trainer(place, seconds=0):
    """Runs out with a micro batch of 4, after some time."""
    (place[0] / 'bin').mkdir()
    program = place[0] / 'bin' / 'python3'
    program.write_text(f'#!/bin/bash\nsleep {seconds}\ncase "$*" in *"--micro-batch-size 4"*) echo "{OOM}"; '
                       'exit 1;; esac\necho done\n')
    program.chmod(0o755)
    (place[0] / 'train.sh').write_text(SCRIPT)


# --- a file that may not grow ---------------------------------------------------------------------

def small_files(size=64 * 1024):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_database_that_may_not_grow_is_no_reason_not_to_run(place):
    result = run(place, OOMRUN, '--', 'echo', 'trains', preexec_fn=small_files)
    assert (result.returncode, result.stdout) == (0, 'trains\n'), result.stderr
    assert 'unsupervised' in result.stderr


def test_the_limit_of_the_command_is_its_own(place):
    """Python ignores the signal and hands that on: here the shell has it as it is."""
    words = 'trap - XFSZ; exec "$0" -- head -c 200000 /dev/zero'
    with open(place[0] / 'big', 'wb') as big:
        result = subprocess.run(['bash', '-c', words, OOMRUN], cwd=place[0], env=place[1], stdout=big,
                                stderr=subprocess.PIPE, preexec_fn=default_signal_and_small_files, timeout=60)
    assert result.returncode == -signal.SIGXFSZ, result.stderr
    assert (place[0] / 'big').stat().st_size == 64 * 1024


def default_signal_and_small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    small_files()


# --- the standard descriptors ---------------------------------------------------------------------

def test_half_an_answer_is_an_error(place):
    (place[0] / 'train.sh').write_text(SCRIPT)
    words = [OOMCTL, 'rewrite', '--framework', 'megatron', '--set', '--micro-batch-size=1', 'train.sh']
    with open('/dev/full', 'w') as full:
        result = run(place, *words, stdout=full)
    assert result.returncode == 2 and 'cannot write to the standard output' in result.stderr
    closed = run(place, 'bash', '-c', '"$@" >&-', 'x', *words)
    assert closed.returncode == 2 and 'cannot write to the standard output' in closed.stderr
    assert run(place, *words).stdout.count('--micro-batch-size 1') == 1


def test_what_is_closed_stays_closed(place):
    result = run(place, 'bash', '-c', '"$0" -- cat <&-; echo $?', OOMRUN)
    assert result.stdout.endswith('1\n') and 'Bad file descriptor' in result.stderr
    result = run(place, 'bash', '-c', '"$0" -- echo trains 2>&-', OOMRUN)
    assert (result.returncode, result.stdout) == (0, 'trains\n')


# --- signals that were ignored before -------------------------------------------------------------

def ignore_children():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def test_a_starter_that_ignores_the_ends_of_children(place):
    process = subprocess.Popen([OOMRUN, '--', 'sh', '-c', 'exit 3'], cwd=place[0], env=place[1],
                               stderr=subprocess.DEVNULL, preexec_fn=ignore_children)
    try:
        assert process.wait(20) == 3
    finally:
        process.kill()
        process.wait()
    # The command has it as it was.
    look = ['grep', '^SigIgn', '/proc/self/status']
    ignored = run(place, OOMRUN, '--', *look, preexec_fn=ignore_children).stdout
    assert int(ignored.split()[1], 16) & 1 << (signal.SIGCHLD - 1)
    assert ignored == run(place, *look, preexec_fn=ignore_children).stdout


# --- a clock that is set --------------------------------------------------------------------------

def test_a_clock_that_is_set_back_makes_no_attempt_short(place):
    directory = place[0]
    trainer(place, seconds=2)
    subprocess.run(['gcc', '-shared', '-fPIC', '-o', directory / 'clock.so',
                    os.path.join(ROOT, 'tests', 'settable_clock.c')], check=True)
    (directory / 'by').write_text('0')
    env = {**place[1], 'LD_PRELOAD': str(directory / 'clock.so'), 'CLOCK_SET_BY': str(directory / 'by')}
    with subprocess.Popen([OOMRUN, '--', 'bash', 'train.sh'], cwd=directory, env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        time.sleep(1)
        (directory / 'by').write_text('-7200')
        output = process.communicate(timeout=60)[0]
    assert process.returncode == 0, output
    took = re.search(r'attempt 1 ended after ([0-9.]+)s: ', output)
    assert took and 2 <= float(took.group(1)) < 30, output


# --- a disk that is full --------------------------------------------------------------------------

def test_what_a_new_job_would_need_is_kept_as_a_whole(place):
    """Half of it, an environment without arguments, would be the environment of another job."""
    homes = [Path(pwd.getpwuid(os.geteuid()).pw_dir, '.local/state/oomretry'),
             Path(f'/var/tmp/oomretry-{os.geteuid()}')]
    name = f'here-{os.getpid()}{time.monotonic_ns()}'
    script = place[0] / 'slurm_script'
    script.write_text('#!/bin/bash\nls %s %s 2>/dev/null\n' % tuple(homes))
    script.chmod(0o755)
    job = {'SLURM_JOB_ID': name[len('here-'):], 'SLURM_CLUSTER_NAME': 'here'}

    def kept():
        words = run(place, OOMRUN, '--slurm', str(script), 'an argument', more_env=job).stdout.split()
        return sorted(word for word in words if word.startswith(name))
    blocked = [home / f'{name}.args' for home in homes]
    try:
        assert kept() == [f'{name}.{kind}' for kind in ('args', 'dir', 'env', 'options', 'script')]
        for home in homes:
            for path in home.glob(f'{name}.*'):
                path.unlink()
        for path in blocked:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (path / 'is a directory').mkdir(parents=True)
        assert kept() == [f'{name}.args'] * 2
    finally:
        for path in blocked:
            shutil.rmtree(path, ignore_errors=True)
        for home in homes:
            for path in home.glob(f'{name}.*'):
                path.unlink()


# --- a script that cannot be restored -------------------------------------------------------------

NOWHERE = 'mount -t tmpfs -o mode=1777,noexec none /tmp && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'


@pytest.fixture
def spooled():
    """A batch script as the plugin leaves it, which its owner cannot write to; no oomrun is there."""
    with tempfile.TemporaryDirectory(dir='/var/tmp') as name:
        prefix = Path(name)
        prefix.chmod(0o755)
        launcher = prefix / 'libexec' / 'oomretry' / 'oomstart'
        launcher.parent.mkdir(parents=True)
        shutil.copy(os.path.join(BUILD, 'libexec', 'oomretry', 'oomstart'), launcher)
        script = prefix / 'slurm_script'
        script.write_text(f'#!{launcher}\n#!/bin/bash  -e \necho "${{0##*/}} $1 $-"\n')
        script.chmod(0o755)
        yield script


@pytest.mark.skipif(os.geteuid() != 0, reason='a script of somebody else needs root')
def test_a_script_that_cannot_be_restored_runs_as_a_copy(spooled):
    words = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', spooled, 'argument']
    result = subprocess.run(words, env={'PATH': '/usr/bin:/bin', 'TMPDIR': '/nonexistent'}, text=True, timeout=20,
                            capture_output=True)
    assert re.fullmatch(r'oomretry-script-\w+ argument ehB\n', result.stdout), result.stderr
    os.unlink('/tmp/' + result.stdout.split()[0])


@pytest.mark.skipif(subprocess.run(['unshare', '-m', 'mount', '-t', 'tmpfs', 'none', '/mnt'],
                                   stderr=subprocess.DEVNULL).returncode != 0, reason='a mount needs root')
def test_where_no_copy_can_be_executed_its_interpreter_takes_it(spooled):
    """The launcher's line is a comment to it; executed, it would come back to the launcher for ever."""
    words = ['unshare', '-m', 'sh', '-c', NOWHERE, 'x', spooled, 'argument']
    result = subprocess.run(words, env={'PATH': '/usr/bin:/bin'}, text=True, timeout=20, capture_output=True)
    assert (result.returncode, result.stdout) == (0, 'slurm_script argument ehB\n'), result.stderr
