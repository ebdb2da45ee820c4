# SPDX-License-Identifier: Apache-2.0
"""The next attempt goes on from the checkpoint that this lineage has written, if it is complete."""
import os
import time

from again import place  # noqa: F401

# What Megatron does: the iteration's directory first, the file that names it last.
PARTIAL = 'mkdir -p ckpt/iter_0000040 && echo half > ckpt/iter_0000040/rank0\n'
WHOLE = PARTIAL + 'echo 40 > ckpt/latest_checkpointed_iteration.txt\n'
AREAL = '''#!/bin/bash
python3 train_grpo.py --config grpo.yaml cluster.fileroot=root experiment_name=exp \\
    trial_name=$TRIAL actor.backend=fsdp:d4 gconfig.max_new_tokens=1024 train_dataset.max_length=512 \\
    actor.mb_spec.max_tokens_per_mb=16384
'''
AREAL_TRAINER = '''#!/bin/bash
echo "$*" >> starts
case "$*" in *max_tokens_per_mb=16384*max_tokens_per_mb=*|*max_tokens_per_mb=8192*|*gradient_checkpointing=true*)
    echo trained; exit 0 ;; esac
. ./before
cat <<'END'
(AReaL) 20260320-11:19:29.153 PPOActor INFO: forward
  File "/AReaL/areal/engine/fsdp_engine.py", line 424, in forward_backward_batch
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.
END
exit 1
'''
INFO = 'root/checkpoints/me/exp/t1/recover_info'


def second_start(place, load='--load /models/base '):
    status, output = place.run(more=f'{load}--save ckpt')
    assert status == 0, output
    return place.starts()[-1]


def test_complete(place):
    place.write(before=WHOLE)
    start = second_start(place)
    assert '--load ckpt' in start and '/models/base' not in start
    story = place.story()
    assert '--load' in {edit['knob'] for edit in story['attempts'][1]['edits']}


def test_half_written(place):
    place.write(before=PARTIAL)
    assert '--load /models/base' in second_start(place)


def test_of_an_earlier_run(place):
    """Its owner started from elsewhere although it was there."""
    os.makedirs(place.path / 'ckpt')
    tracker = place.path / 'ckpt/latest_checkpointed_iteration.txt'
    tracker.write_text('40')
    os.utime(tracker, (time.time() - 86400,) * 2)
    assert '--load /models/base' in second_start(place)


def test_settings_that_would_not_load_stay(place):
    """The optimizer's state is in the checkpoint that the job loads, however old it is."""
    os.makedirs(place.path / 'ckpt')
    tracker = place.path / 'ckpt/latest_checkpointed_iteration.txt'
    tracker.write_text('40')
    os.utime(tracker, (time.time() - 86400,) * 2)
    place.write(needs='10')
    place.run(more='--load ckpt --save ckpt')
    told = place.ctl('explain', 'L1')
    assert 'would not load with another' in told, told
    assert not any('precision-aware' in start for start in place.starts())


def areal(place, trial, before):
    (place.path / 'bin/python3').write_text(AREAL_TRAINER)
    place.write(**{'before': before, 'train.sh': AREAL, 'grpo.yaml': 'a: 1\n'})
    place.env['TRIAL'] = trial
    place.script = AREAL
    status, output = place.run()
    assert status == 0, output
    return place.starts()[-1]


def test_areal_recovers(place):
    start = areal(place, 't1', f'mkdir -p {INFO}; echo 1 > {INFO}/step_info.json; '
                               f'echo 1 > {INFO}/dataloader_info.pkl\n')
    assert 'recover.mode=auto' in start


def test_areal_half_written_or_of_another_trial(place):
    assert 'recover.mode' not in areal(place, 't1', f'mkdir -p {INFO}; '
                                                    f'echo 1 > {INFO}/step_info.json\n')
    place.path.joinpath('starts').unlink()
    assert 'recover.mode' not in areal(place, 't2', f'mkdir -p {INFO}; '
                                                    f'echo 1 > {INFO}/dataloader_info.pkl\n')
