# SPDX-License-Identifier: Apache-2.0
"""Logs that are appended to: what stood there before an attempt began is not that attempt's."""
import pytest

from again import place  # noqa: F401

OLD = '''monday
  File "/x/relax/backends/megatron/actor.py", line 424, in train_actor
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is free.
tuesday
'''


@pytest.mark.parametrize('how', ['2>&1 | tee -a train.log', '>> train.log 2>&1',
                                 '> train.log 2>&1', '2>&1 | tee train.log'])
def test_success_after_a_failure(place, how):  # noqa: F811
    place.script = place.script.replace('"${ARGS[@]}"', '"${ARGS[@]}" ' + how)
    status, said = place.run()
    assert status == 0, said
    assert len(place.starts()) == 2, said


@pytest.mark.parametrize('how', ['2>&1 | tee -a train.log', '>> train.log 2>&1'])
def test_an_old_failure_is_not_todays(place, how):  # noqa: F811
    place.script = place.script.replace('"${ARGS[@]}"', '"${ARGS[@]}" ' + how)
    place.write(**{'train.log': OLD, 'needs': '20000'})
    status, said = place.run()
    assert status == 0 and len(place.starts()) == 1, said
    place.write(before='echo "KeyError: 7"; exit 3')
    (place.path / 'starts').unlink()
    status, said = place.run()
    assert len(place.starts()) == 1, said


def test_the_second_failure_is_read_by_itself(place):  # noqa: F811
    """In the same file, the first one's words stand before it."""
    place.script = place.script.replace('"${ARGS[@]}"', '"${ARGS[@]}" >> train.log 2>&1')
    place.write(before='[ $(wc -l < starts) = 1 ] || { echo "RuntimeError: no such tensor"; exit 3; }')
    status, said = place.run()
    assert status == 3 and len(place.starts()) == 2, said
    assert 'exit 3, no sign of memory' in said


def test_last_words_come_through_a_process_nobody_waits_for(place):  # noqa: F811
    """`exec > >(…)`: the script has ended, and what it said is still on its way."""
    place.script = place.script.replace('#!/bin/bash\n', '#!/bin/bash\nexec > >(sleep 0.3; cat) 2>&1\n')
    status, said = place.run()
    assert status == 0 and 'trained with 6144' in said, said
