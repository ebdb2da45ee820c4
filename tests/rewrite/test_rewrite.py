# SPDX-License-Identifier: Apache-2.0
"""Rewriting launch scripts.

What counts is what the program is finally given, so each case under cases/ is run under stub
commands before and after (oracle.py says how). The properties hold for the cases' scripts and for
generated ones.
"""
import concurrent.futures
import difflib
import json
import os
import random
import re
import shlex
import subprocess

import pytest

import oracle

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get('OOMRETRY_BUILD', os.path.join(ROOT, 'build'))
OOMCTL = os.path.join(BUILD, 'bin', 'oomctl')
CASES = oracle.cases_in(os.path.join(HERE, 'cases'))
NAMES = [case['name'] for case in CASES]


def oomctl(path, framework, *arguments, cwd=None):
    return subprocess.run([OOMCTL, 'rewrite', '--framework', framework, *arguments, path],
                          capture_output=True, timeout=20, cwd=cwd, stdin=subprocess.DEVNULL)


def settings(case):
    out = []
    for knob, value in case['set'].items():
        out += ['--set', '%s=%s' % (knob, value if isinstance(value, str) else json.dumps(value))]
    for knob in case['unset']:
        out += ['--unset', knob]
    return out


@pytest.fixture(scope='session')
def verdicts():
    """All cases at once, as many as there are processors."""
    rewriter = shlex.quote(OOMCTL) + ' rewrite --framework {framework} {sets} {script}'
    oracle.isolation()
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        return dict(zip(NAMES, pool.map(lambda case: oracle.check(case, rewriter), CASES)))


@pytest.mark.parametrize('name', NAMES)
def test_case(verdicts, name):
    assert verdicts[name] == []


def test_enough_cases():
    assert len(CASES) >= 60


def script_of(case):
    return os.path.join(case['dir'], 'script.sh')


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def accepted_by_bash(text):
    return subprocess.run(['/bin/bash', '-n'], input=text, capture_output=True).returncode == 0


@pytest.mark.parametrize('case', CASES, ids=NAMES)
def test_nothing_asked_is_nothing_changed(case):
    result = oomctl(script_of(case), case['framework'])
    assert result.returncode == 0, result.stderr
    assert result.stdout == read(script_of(case))


@pytest.mark.parametrize('case', CASES, ids=NAMES)
def test_twice_is_once(case, tmp_path):
    """What is as wanted already is left alone."""
    oracle.copy_side(case['dir'], str(tmp_path / 'w'))
    script = tmp_path / 'w' / 'script.sh'
    script.write_bytes(read(script_of(case)))
    first = oomctl(str(script), case['framework'], *settings(case), '--json')
    assert first.returncode == 0, first.stderr
    first = json.loads(first.stdout)
    assert len(first['copies']) == case.get('copies', 0)
    for copy in first['copies']:
        with open(copy['new_path'], 'w', newline='') as file:
            file.write(copy['content'])
    script.write_bytes(first['script'].encode())
    second = oomctl(str(script), case['framework'], *settings(case), '--json')
    assert second.returncode == 0, second.stderr
    second = json.loads(second.stdout)
    assert second['script'] == first['script'] and second['copies'] == []
    assert accepted_by_bash(first['script'].encode())


@pytest.mark.parametrize('case', CASES, ids=NAMES)
def test_present_values_change_nothing(case):
    values = oomctl(script_of(case), case['framework'], '--values', '--json')
    assert values.returncode == 0, values.stderr
    arguments = []
    for knob, value in json.loads(values.stdout).items():
        plain = value['value'] and '$' not in value['value'] and '`' not in value['value']
        literal = plain and value['source'] == 'script' and value.get('where', '').startswith('script:')
        # What the environment or "$@" may replace is not settled by what the script says.
        open_ended = re.search(rb'\$\{\w+:?[-=+]|\$[@*1-9]|\$\{[@*1-9]|"\$@"', read(script_of(case)))
        several = case.get('variants') or case['expect'][0]['count'] > 1
        in_file = ':' in knob and value['value'] and value['source'] == 'config'
        if (literal and not open_ended or in_file) and not several:
            arguments += ['--set', '%s=%s' % (knob, value['value'])]
    result = oomctl(script_of(case), case['framework'], *arguments)
    assert result.returncode == 0, result.stderr
    assert result.stdout == read(script_of(case))
    assert b'copy of' not in result.stderr


# ---- generated scripts

FLAGS = [('--micro-batch-size', '4'), ('--global-batch-size', '256'), ('--lr', '1.0e-4'), ('--seq-length', '4096'),
         ('--save', '/ckpt/a b'), ('--num-layers', '32'), ('--wandb-exp-name', "it's"), ('--weight-decay', '0.1')]
SWITCHES = ['--bf16', '--use-flash-attn', '--recompute-activations', '--sequence-parallel']


class Generator:
    """A script that starts pretrain_gpt.py with known flags, written in one of many ways."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.flags = dict(self.r.sample(FLAGS, self.r.randint(3, len(FLAGS))))
        self.flags['--micro-batch-size'] = '4'
        self.switches = self.r.sample(SWITCHES, self.r.randint(0, 3))

    def words(self):
        words = []
        for flag, value in self.flags.items():
            value = shlex.quote(value)
            if self.r.random() < 0.3 and value == value.strip("'"):
                value = '"%s"' % value
            words.append('%s=%s' % (flag, value) if self.r.random() < 0.3 else '%s %s' % (flag, value))
        words += self.switches
        self.r.shuffle(words)
        return words

    def comment(self):
        return self.r.choice(['', '', '   # --micro-batch-size 16', '  # größer geht nicht'])

    def array(self):
        lines = ['ARGS=(']
        for word in self.words():
            lines.append('    ' + word + self.comment())
        lines += ['    # --micro-batch-size 99', ')']
        return '\n'.join(lines), '"${ARGS[@]}"'

    def appended(self):
        words = self.words()
        cut = self.r.randint(1, len(words))
        text = 'ARGS=( %s )\n' % ' '.join(words[:cut])
        if words[cut:]:
            text += 'ARGS+=(\n  %s)\n' % '\n  '.join(words[cut:])
        return text, '${ARGS[@]}' if all(' ' not in v for v in self.flags.values()) else '"${ARGS[@]}"'

    def continued(self):
        return 'set -u', ' \\\n    '.join(self.words())

    def generate(self):
        prelude, arguments = self.r.choice([self.array, self.appended, self.continued])()
        launcher = self.r.choice(['python', 'python3 -u', 'torchrun --nproc-per-node 8', 'srun --label python3',
                                  'accelerate launch --num_processes 8', 'env A=1 numactl -N 0 python'])
        end = self.r.choice(['', ' 2>&1 | tee log', ' > out.log 2>&1', ' &\nwait', ' || exit 1', ' # --micro-batch-size 3'])
        command = '%s pretrain_gpt.py %s%s' % (launcher, arguments, end)
        command = self.r.choice(['%s', '%s', 'if true; then\n    %s\nfi', 'run() {\n  %s\n}\nrun',
                                 'for i in 1; do\n%s\ndone']) % command
        tail = self.r.choice(['', '\n', '\necho "--micro-batch-size 4"\n', '\ncat <<EOF\n--micro-batch-size 4\nEOF\n'])
        return '#!/bin/bash\n#SBATCH --nodes=1\n%s\n%s%s' % (prelude, command, tail)


SEEDS = range(60)


@pytest.fixture(params=SEEDS)
def generated(request, tmp_path):
    generator = Generator(request.param)
    text = generator.generate().encode()
    path = tmp_path / 'script.sh'
    path.write_bytes(text)
    assert accepted_by_bash(text), text.decode()
    return generator, path, text


def test_generated_change_and_undo(generated, tmp_path):
    generator, path, text = generated
    knob = generator.r.choice(sorted(generator.flags))
    value = generator.r.choice(['7', '0.25', 'x y', "a'b", '$HOME', 'q"r', '[1,2]'])
    if b' ${ARGS[@]}' in text:
        value = value.replace(' ', '-')  # split again where the array is expanded: no place in it
    there = oomctl(str(path), 'megatron', '--set', '%s=%s' % (knob, value))
    assert there.returncode == 0, there.stderr
    assert accepted_by_bash(there.stdout)
    # One place changed, every other byte is the same.
    changes = [op for op in difflib.SequenceMatcher(None, text, there.stdout, autojunk=False).get_opcodes()
               if op[0] != 'equal']
    assert changes and max(op[2] for op in changes) - min(op[1] for op in changes) <= 40
    path.write_bytes(there.stdout)
    back = oomctl(str(path), 'megatron', '--set', '%s=%s' % (knob, generator.flags[knob]))
    assert back.returncode == 0, back.stderr
    undone, original = back.stdout, text
    if value != '7' and value != '0.25' or undone != original:
        # A value that needed quotes keeps them: the words are what they were.
        undone, original = (t.replace(b"'", b'').replace(b'"', b'').replace(b'\\', b'') for t in (undone, original))
    assert undone == original


def test_generated_add_and_take_away(generated, tmp_path):
    generator, path, text = generated
    there = oomctl(str(path), 'megatron', '--set', '--num-workers=3', '--set', '--new-switch=true')
    assert there.returncode == 0, there.stderr
    assert there.stdout != text and accepted_by_bash(there.stdout)
    path.write_bytes(there.stdout)
    back = oomctl(str(path), 'megatron', '--unset', '--num-workers', '--unset', '--new-switch')
    assert back.returncode == 0, back.stderr
    assert back.stdout == text


def test_generated_present_values(generated):
    generator, path, text = generated
    arguments = []
    for knob, value in generator.flags.items():
        arguments += ['--set', '%s=%s' % (knob, value)]
    for knob in generator.switches:
        arguments += ['--set', '%s=true' % knob]
    result = oomctl(str(path), 'megatron', *arguments)
    assert result.returncode == 0, result.stderr
    assert result.stdout == text


def test_generated_reaches_the_program(tmp_path):
    """A sample of the generated scripts is really run."""
    def one(seed):
        generator = Generator(seed)
        text = generator.generate()
        path = tmp_path / ('%d.sh' % seed)
        path.write_text(text)
        new = oomctl(str(path), 'megatron', '--set', '--micro-batch-size=2', '--unset', '--bf16').stdout.decode()
        case = {'framework': 'megatron', 'dir': '', 'set': {'--micro-batch-size': '2'}, 'unset': ['--bf16']}
        before, after = oracle.Run(text, None), oracle.Run(new, None)
        bad = oracle.claims(after, case, [{'command_match': '^pretrain_gpt', 'count': 1,
                                           'values': {'--micro-batch-size': '2'}, 'absent': ['--bf16']}], str(seed))
        if [oracle.signature(l, dict(case, expect=[{'command_match': '^pretrain_gpt'}])) for l in before.leaves] != \
           [oracle.signature(l, dict(case, expect=[{'command_match': '^pretrain_gpt'}])) for l in after.leaves]:
            bad.append('%d: something else changed' % seed)
        return bad

    oracle.isolation()
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        assert [bad for bad in pool.map(one, range(1000, 1024)) if bad] == []


# ---- refusals

@pytest.mark.parametrize('text, place', [
    ('#!/bin/bash\nif true; then\n  python3 train.py --colocate\n', 'script:2:'),
    ('#!/bin/bash\npython3 train.py --colocate --name "abc\n', 'script:2:'),
    ('#!/bin/bash\nARGS=(\n --a 1\npython3 train.py --colocate\n', 'script:2:'),
    ('#!/bin/bash\npython3 train.py --colocate | | tee x\n', 'script:2:'),
    ('#!/usr/bin/env python3\nprint(1)\n', 'script:1'),
])
def test_refuses_what_does_not_parse(tmp_path, text, place):
    path = tmp_path / 'script.sh'
    path.write_text(text)
    result = oomctl(str(path), 'slime', '--set', '--max-tokens-per-gpu=1')
    assert result.returncode == 2 and result.stdout == b''
    assert place in result.stderr.decode()


def test_refuses_where_nothing_trains(tmp_path):
    path = tmp_path / 'script.sh'
    path.write_text('#!/bin/bash\necho python3 train.py --max-tokens-per-gpu 2\n')
    result = oomctl(str(path), 'slime', '--set', '--max-tokens-per-gpu=1')
    assert result.returncode == 2 and b'no command in it' in result.stderr


def test_says_when_the_launch_is_out_of_sight(tmp_path):
    path = tmp_path / 'script.sh'
    path.write_text('#!/bin/bash\nbash /elsewhere/run.sh\n')
    result = oomctl(str(path), 'slime', '--set', '--max-tokens-per-gpu=1')
    assert result.returncode == 0 and result.stdout == path.read_bytes()
    assert b'a retry changes its arguments when it is executed' in result.stderr


# ---- copies of other files

def test_copies_are_written_where_asked(tmp_path):
    (tmp_path / 'ds.json').write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / 'run.sh').write_text('deepspeed train.py --deepspeed ds.json --per_device_train_batch_size 2\n')
    (tmp_path / 'out').mkdir()
    change = ['--set', 'ds:zero_optimization.stage=3']
    told = oomctl(str(tmp_path / 'run.sh'), 'deepspeed', *change)
    assert b'-{"zero_optimization": {"stage": 2}}' in told.stderr and b'+{"zero_optimization": {"stage": 3}}' in told.stderr
    assert os.listdir(tmp_path / 'out') == []
    written = oomctl(str(tmp_path / 'run.sh'), 'deepspeed', *change, '--copies', str(tmp_path / 'out'))
    name = re.search(rb'--deepspeed (\S+)', written.stdout).group(1).decode()
    assert os.path.dirname(name) == str(tmp_path / 'out') and read(name) == b'{"zero_optimization": {"stage": 3}}'
    assert read(tmp_path / 'ds.json') == b'{"zero_optimization": {"stage": 2}}'
    diff = oomctl(str(tmp_path / 'run.sh'), 'deepspeed', *change, '--diff').stdout
    assert b'+++ ds.json' in diff and diff.count(b'@@') == 4


@pytest.mark.parametrize('text, why', [
    ('{"zero_optimization": {"stage": 2},}', 'ds.json:1:'),
    ('{"zero_optimization": 2}', 'ds.json:1: zero_optimization.stage:'),
    (None, 'ds.json cannot be read'),
])
def test_refuses_files_that_it_cannot_change(tmp_path, text, why):
    if text:
        (tmp_path / 'ds.json').write_text(text)
    (tmp_path / 'run.sh').write_text('deepspeed train.py --deepspeed ds.json --per_device_train_batch_size 2\n')
    result = oomctl(str(tmp_path / 'run.sh'), 'deepspeed', '--set', 'ds:zero_optimization.stage=3')
    assert result.returncode == 2 and result.stdout == b'' and why in result.stderr.decode()


def test_a_script_that_minds_its_name_gets_no_copy(tmp_path):
    """Its runs would be named after the copy: the change is made when the program is executed."""
    (tmp_path / 'run.sh').write_text('python3 pretrain_gpt.py --micro-batch-size 4 --name $(basename "$0" .sh)\n')
    (tmp_path / 'script.sh').write_text('bash run.sh\n')
    reply = json.loads(oomctl(str(tmp_path / 'script.sh'), 'megatron', '--set', '--micro-batch-size=2', '--json').stdout)
    assert reply['copies'] == [] and reply['needs_exec'] and reply['script'] == 'bash run.sh\n'
