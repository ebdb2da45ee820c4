# SPDX-License-Identifier: Apache-2.0
"""Programs that start the training themselves: what they were seen to start says which framework
it is, and its arguments are changed when it is executed."""
import pytest

from again import place  # noqa: F401

FILES = {
    'Makefile': 'train:\n\t@python3 -m relax.entrypoints.train $(shell cat words)\n',
    'launch.py': 'import subprocess, sys\n'
                 'words = open("words").read().split()\n'
                 'sys.exit(subprocess.call(["python3", "-m", "relax.entrypoints.train", *words]))\n',
    'words': '--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 '
             '--use-dynamic-batch-size --max-tokens-per-gpu 12288\n',
    'before': 'sleep 0.4\n',  # long enough for its arguments to be seen on a busy machine
}


@pytest.mark.parametrize('how', ['make -s train', '/usr/bin/python3 launch.py --name x',
                                 'xargs -a words python3 -m relax.entrypoints.train'])
def test_changed_where_it_starts(place, how):  # noqa: F811
    place.write(**FILES)
    place.script = '#!/bin/bash\n%s # MORE\n' % how
    status, said = place.run()
    assert status == 0 and 'trained with 6144' in said, said
    assert [line.split()[-1] for line in place.starts()] == ['12288', '6144']
    assert place.story()['lineage']['framework'] == 'relax'


# The first of two trainings runs out; its traceback names no framework.
FIRST = '''case "$*" in sft.py*)
    sleep 0.4
    case "$*" in *"--per_device_train_batch_size 8"*)
        echo '  File "sft.py", line 9, in training_step'
        echo '    loss.backward()'
        echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is free.'
        exit 1 ;;
    esac
    exit 0 ;;
esac
'''


def test_what_never_ran_did_not_fail(place):  # noqa: F811
    place.script = place.script.replace('python3 -m', 'set -e\npython3 sft.py --model_name_or_path m '
                                        '--per_device_train_batch_size 8 --gradient_checkpointing true\npython3 -m')
    place.write(before=FIRST, needs='20000')
    status, said = place.run()
    assert status == 0, said
    starts = place.starts()
    assert ['sft.py' in line for line in starts] == [True, True, False]
    assert '--per_device_train_batch_size 4' in starts[1]
    assert '--max-tokens-per-gpu 12288' in starts[2]
