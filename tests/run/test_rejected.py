# SPDX-License-Identifier: Apache-2.0
"""A program that does not take a change: it is taken back, and the ladder goes on without it."""
import pytest

from test_oomrun import OOM, history, place, run  # noqa: F401 (a fixture)

# Runs with a micro-batch of 1; refuses the options in $REFUSED as an older version would.
TRAINER = f'''#!/usr/bin/python3
import os, sys, time
args = sys.argv[1:]
time.sleep(0.3)
refused = [a for a in args if a in os.environ["REFUSED"].split()]
if refused and os.environ["HOW"] == "argparse":
    sys.exit("usage: pretrain_gpt.py [-h]\\npretrain_gpt.py: error: unrecognized arguments: " + " ".join(refused))
if refused and os.environ["HOW"] == "assertion":
    print("Traceback (most recent call last):\\n  File \\"arguments.py\\", line 3, in validate_args\\n    assert ok",
          file=sys.stderr)
    sys.exit("AssertionError: " + refused[0][2:].replace("-", "_") + " is not supported here")
if refused:
    sys.exit("RuntimeError: NCCL error")
if args[args.index("--micro-batch-size") + 1] != "1":
    print('  File "/x/megatron/core/transformer/transformer_layer.py", line 424, in forward')
    sys.exit({OOM!r})
'''
SCRIPT = '''#!/bin/bash
python3 pretrain_gpt.py --num-layers 4 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \\
    --micro-batch-size 2 --global-batch-size 64 --bf16
'''


@pytest.fixture
def megatron(place):  # noqa: F811
    where, env = place
    (where / 'bin/python3').write_text(TRAINER)
    (where / 'train.sh').write_text(SCRIPT)
    env.update(REFUSED='--recompute-method', HOW='argparse')
    return place


def steps(place):  # noqa: F811
    return [(a['outcome'], (a['decision'] or {}).get('rung')) for a in history(place)['attempts']]


@pytest.mark.parametrize('how', ['argparse', 'assertion'])
def test_the_ladder_goes_on(megatron, how):
    megatron[1]['HOW'] = how
    p = run(megatron, 'bash', 'train.sh')
    assert p.returncode == 0, p.stderr.decode()
    assert steps(megatron) == [('oom', None), ('rejected', 'full-recompute'), ('completed', 'smaller-micro-batch')]
    # What was refused has left the script altogether.
    total = {e['knob']: e['new'] for e in history(megatron)['attempts'][2]['total_edits']}
    assert total == {'--micro-batch-size': '1'}
    assert b'full-recompute was refused by the program and is taken back' in p.stderr


def test_another_failure_of_a_changed_attempt_ends_it(megatron):
    megatron[1]['HOW'] = 'something else'
    assert run(megatron, 'bash', 'train.sh').returncode == 1
    assert steps(megatron) == [('oom', None), ('failed', 'full-recompute')]


def test_the_users_own_mistake_is_not_ours(megatron):
    megatron[1]['REFUSED'] = '--bf16'
    assert run(megatron, 'bash', 'train.sh').returncode == 1
    assert steps(megatron) == [('failed', None)]


def test_it_ends_when_everything_is_refused(megatron):
    (megatron[0] / 'bin/python3').write_text(TRAINER.replace(
        'a in os.environ["REFUSED"].split()', 'a.startswith("--") and a not in os.environ["REFUSED"].split()')
        .replace('!= "1"', '!= "0"'))
    megatron[1]['REFUSED'] = '--num-layers --hidden-size --num-attention-heads --seq-length --micro-batch-size ' \
                             '--global-batch-size --bf16'
    p = run(megatron, 'bash', 'train.sh')
    assert p.returncode == 1
    outcomes = steps(megatron)
    rungs = [rung for _, rung in outcomes if rung]
    assert ('rejected', 'full-recompute') in outcomes and len(rungs) == len(set(rungs))
    assert b'not retried: ' in p.stderr
