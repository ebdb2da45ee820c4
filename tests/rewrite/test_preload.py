# SPDX-License-Identifier: Apache-2.0
"""The preload library: what it changes, and that it does no harm anywhere else."""
import os
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('OOMRETRY_BUILD', os.path.join(ROOT, 'build'))
LIBRARY = os.path.join(BUILD, 'libexec', 'oomretry', 'liboomargv.so')

# Says what it was started with.
PROGRAM = '#!/bin/sh\necho "argv $0 $*"\necho "env ${LD_PRELOAD:-none} ${NAME:-none}"\n'


@pytest.fixture
def place(tmp_path):
    for name in 'python3', 'apptainer', 'torchrun', 'trl', 'grep':
        path = tmp_path / 'bin' / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROGRAM)
        path.chmod(0o755)
    (tmp_path / 'report').touch()
    return tmp_path


def run(place, *argv, records=('set|flag|--tokens|4608', 'switch|--fast', 'env|NAME|a%20b'), match='match|train.py', env=None):
    instructions = ';'.join(['1', 'report|%s' % (place / 'report'), match, *records])
    environment = {'PATH': '%s:/usr/bin:/bin' % (place / 'bin'), 'LD_PRELOAD': LIBRARY,
                   'OOMRETRY_ARGV': instructions, **(env or {})}
    done = subprocess.run(['/bin/bash', '-c', 'exec "$@"', 'x', *argv], env=environment, cwd=place,
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, (place / 'report').read_text()


def words(out):
    return [line.split()[2:] for line in out.splitlines() if line.startswith('argv ')]


def test_changes_once_and_reports(place):
    out, err, report = run(place, 'python3', '-u', 'train.py', '--tokens', '9216', '--x=1')
    assert words(out) == [['-u', 'train.py', '--tokens', '4608', '--x=1', '--fast']]
    assert 'env %s a b' % LIBRARY in out
    assert report.count('\n') == 1 and '--tokens=4608' in report and 'train.py' in report


def test_what_is_as_wanted_stays(place):
    out, err, report = run(place, 'python3', 'train.py', '--fast', '--tokens=4608')
    assert words(out) == [['train.py', '--fast', '--tokens=4608']]
    assert report == ''


@pytest.mark.parametrize('records, given, wanted', [
    (['set|key|a.b|4'], ['a.b=8', 'c=1'], ['a.b=8', 'c=1', '++a.b=4']),
    (['set|plain|a|4'], ['x.yaml', 'a=8'], ['x.yaml', 'a=8', 'a=4']),
    (['set|plain|a|4'], ['--a', '8'], ['--a', '4']),
    (['set|flag|--a-b|4', 'alike'], ['--a_b', '8'], ['--a_b', '4']),
    (['set|flag|--a|4'], ['--a', '8', '--a', '9', '--', '--a', '1'], ['--a', '8', '--a', '4', '--', '--a', '1']),
    (['set|flag|--new|4'], ['--', 'tail'], ['--new=4', '--', 'tail']),
    (['drop|--a|1', 'drop|--s|0'], ['--a', '8', '--s', 'pos', '--a=9'], ['pos']),
    (['set|flag|--a|x%7Cy%3Bz'], ['--a', '8'], ['--a', 'x|y;z']),
])
def test_forms(place, records, given, wanted):
    out, _, _ = run(place, 'python3', 'train.py', *given, records=records)
    assert words(out) == [['train.py', *wanted]]


def test_launchers_and_sub_commands(place):
    out, _, _ = run(place, 'torchrun', '--nproc-per-node', '8', '-m', 'pkg.train', '--tokens', '1', match='match|pkg.train')
    assert words(out)[0][-3:] == ['--tokens', '4608', '--fast']
    out, _, _ = run(place, 'trl', 'sft', '--tokens', '1', match='match|trl sft')
    assert words(out) == [['sft', '--tokens', '4608', '--fast']]


@pytest.mark.parametrize('argv', [
    ['grep', 'train.py', '--tokens', '1'],
    ['python3', '-c', 'train.py', '--tokens', '1'],
    ['python3', 'other.py', '--tokens', '1'],
])
def test_other_commands_are_left_alone(place, argv):
    out, _, report = run(place, *argv)
    assert words(out) == [argv[1:]] and report == ''


@pytest.mark.parametrize('around', [
    ['env', '-i', 'PATH=%(path)s'],
    ['bash', '-c', 'unset LD_PRELOAD OOMRETRY_ARGV; "$@"', 'x'],
    ['bash', '-c', 'export LD_PRELOAD=; exec bash -c \'exec "$@"\' y "$@"', 'x'],
    ['nohup', 'nice', '-n', '1', 'timeout', '9'],
])
def test_survives(place, around):
    around = [word % {'path': place / 'bin'} for word in around]
    out, _, _ = run(place, *around, 'python3', 'train.py', '--tokens', '1')
    assert words(out) == [['train.py', '--tokens', '4608', '--fast']]
    assert LIBRARY in out


def test_keeps_what_else_is_preloaded(place):
    libc = subprocess.run(['ldconfig', '-p'], capture_output=True, text=True).stdout
    other = next(line.split('=> ')[1] for line in libc.splitlines() if 'libm.so.6' in line and 'x86-64' in line)
    out, _, _ = run(place, 'python3', 'train.py', env={'LD_PRELOAD': '%s:%s' % (other, LIBRARY)})
    assert 'env %s:%s' % (LIBRARY, other) in out


def test_leaves_the_environment_where_a_container_begins(place):
    out, err, _ = run(place, 'apptainer', 'exec', 'i.sif', 'python3', 'train.py', '--tokens', '1')
    assert words(out) == [['exec', 'i.sif', 'python3', 'train.py', '--tokens', '4608', '--fast']]
    assert 'env none' in out and err == ''


@pytest.mark.parametrize('instructions', ['', '2;match|x', '1;what|x', '1;match', '1;set|no|a|b;match|train.py', '1;' + 'match|x;' * 500,
                                          '1;match|%', 'x' * 20000])
def test_instructions_that_are_not_understood(place, instructions):
    out, err, _ = run(place, 'python3', 'train.py', '--tokens', '1', env={'OOMRETRY_ARGV': instructions})
    assert words(out) == [['train.py', '--tokens', '1']] and err == ''


def test_static_and_set_user_id_programs(place):
    if not shutil.which('gcc'):
        pytest.skip('no compiler')
    source = place / 's.c'
    source.write_text('#include <stdio.h>\n#include <unistd.h>\nint main(int c, char **v) {\n'
                      'printf("uid %d %d %s\\n", (int)geteuid(), c, c > 1 ? v[1] : ""); return 0; }\n')
    static = place / 'static'
    subprocess.run(['gcc', '-static', '-o', str(static), str(source)], check=True)
    out, err, _ = run(place, str(static), 'a')
    assert out.startswith('uid ') and err == ''
    out, err, _ = run(place, 'su', '--version')
    assert out.startswith('su ') and err == ''


def test_a_long_vector_is_passed_on(place):
    many = ['--x'] * 5000
    out, _, report = run(place, 'python3', 'train.py', *many)
    assert words(out) == [['train.py', *many]] and report == ''
