# SPDX-License-Identifier: Apache-2.0
"""Proof that a change arrived, and present values, where nobody sees the program's arguments: the
program is gone at once, so what it printed of its own settings and the report of the preload
library are all there is.
"""
import json
import os
import subprocess

import pytest

from test_oomrun import OOM, OOMCTL, OOMRUN

# %(take)s says which of the given tokens count; %(table)s prints what it runs with.
TRAINER = '''#!/bin/bash
tokens=12288
while [ $# -gt 0 ]; do
    case $1 in --max-tokens-per-gpu) %(take)s ;; esac
    shift
done
echo "tokens $tokens"
%(table)s
if [ "$tokens" -gt 7000 ]; then
    echo '  File "/x/relax/backends/megatron/actor.py", line 424, in train_actor'
    echo '%(oom)s'
    exit 1
fi
echo done
'''
TABLE = '''echo "------------------------ arguments ------------------------"
printf '  max_tokens_per_gpu .............................. %s\\n' "$tokens"
echo "  use_dynamic_batch_size .......................... True"
for i in {1..200}; do echo "  argument_$i ............ $i"; done
echo "-------------------- end of arguments ---------------------"'''
FLAGS = '--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --use-dynamic-batch-size'


@pytest.fixture
def place(tmp_path):
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'no.conf').write_text('head_socket: /nonexistent/head.sock\n')
    env = {'PATH': f'{tmp_path}/bin:/usr/bin:/bin', 'HOME': str(tmp_path), 'LANG': 'C.UTF-8',
           'XDG_STATE_HOME': str(tmp_path / 'state'), 'OOMRETRY_CONFIG': str(tmp_path / 'no.conf')}
    return tmp_path, env


def trainer(place, take='tokens=$2', table=TABLE):
    path = place[0] / 'bin/python3'
    path.write_text(TRAINER % {'take': take, 'table': table, 'oom': OOM})
    path.chmod(0o755)


def run(place, text):
    where, env = place
    (where / 'train.sh').write_text('#!/bin/bash\n' + text)
    p = subprocess.run([OOMRUN, '--', 'bash', 'train.sh'], cwd=where, env=env, capture_output=True, timeout=60)
    out = subprocess.run([OOMCTL, 'history', '--json', 'L1'], cwd=where, env=env, capture_output=True, timeout=20)
    return p, json.loads(out.stdout)


def edit_of(tree, knob='--max-tokens-per-gpu'):
    return [e for e in tree['attempts'][-1]['total_edits'] if e['knob'] == knob]


def test_the_dump_says_what_nobody_else_does(place):
    """The script does not set the knob, and the policy has no default: 12288 stands in the log only."""
    trainer(place)
    p, tree = run(place, f'python3 -m relax.entrypoints.train {FLAGS}\n')
    assert p.returncode == 0, p.stderr
    assert p.stdout.startswith(b'tokens 12288') and b'done' in p.stdout
    assert edit_of(tree)[0]['old'] == '12288'
    last = tree['attempts'][-1]
    assert last['applied'] == 'yes' and "dump in the log" in last['proof']


def test_without_a_dump_there_is_nothing_to_lower(place):
    trainer(place, table='')
    p, tree = run(place, f'python3 -m relax.entrypoints.train {FLAGS}\n')
    assert not edit_of(tree), 'a number out of nowhere'


def test_a_dump_that_shows_the_old_value_ends_it(place):
    trainer(place, take=':')
    p, tree = run(place, f'python3 -m relax.entrypoints.train {FLAGS} --max-tokens-per-gpu 12288\n')
    assert p.returncode == 1
    assert p.stdout.count(b'tokens 12288') == 2, 'it is not repeated'
    assert tree['lineage']['state'] == 'stopped' and 'did not arrive' in tree['lineage']['reason']
    assert tree['attempts'][1]['applied'] == 'no'
    assert 'dump in the log shows 12288' in tree['attempts'][1]['proof']
    assert b'did not arrive' in p.stderr


def test_a_flag_that_the_program_ignores_ends_it(place):
    """Relax and slime skip flags that they do not know: the complete table lacks them."""
    trainer(place, take=':', table=TABLE.replace('max_tokens_per_gpu', 'another_name.....'))
    p, tree = run(place, f'python3 -m relax.entrypoints.train {FLAGS} --max-tokens-per-gpu 12288\n')
    assert p.returncode == 1
    assert tree['attempts'][1]['applied'] == 'no' and 'ignores it' in tree['attempts'][1]['proof']


def test_the_report_of_the_library_is_proof(place):
    """The launch command is out of sight, the second attempt prints nothing and has ended before anybody looks."""
    where, env = place
    trainer(place, table='[ "$tokens" -le 7000 ] || printf -- "- arguments -\n  use_dynamic_batch_size ... True\n'
            '  recompute_granularity ... full\n  max_tokens_per_gpu ... %s\n" "$tokens"')
    (where / 'launch.txt').write_text(f'exec python3 -m relax.entrypoints.train {FLAGS} --max-tokens-per-gpu 12288\n')
    # The script's text does not show what is started: the file is read when it runs.
    text = 'source <(sed "s/^/ /" "$PWD/launch.txt")\n'
    p, tree = run(place, text)
    assert p.returncode == 0, p.stderr
    last = tree['attempts'][-1]
    assert last['applied'] == 'yes'
    assert 'launch command was executed' in last['proof'] or 'arguments of the running' in last['proof']
    assert not [f for f in os.listdir(where) if 'oomrun' in f], 'the report stays behind'
