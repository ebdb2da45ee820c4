# SPDX-License-Identifier: Apache-2.0
"""A script does more than train: what runs out before the training or behind it is not helped by
the training's settings."""
import pytest

from again import place  # noqa: F401

# Everything but the training; long enough to be seen on a busy machine.
OTHERS = '''sleep 0.5
case "$*" in
*tokenize.py*|*export.py*)
    sleep 0.5
    [ ! -e "fails.$1" ] || {
        cat "fails.$1"
        exit 1
    }
    exit 0 ;;
*notify.py*) exit 0 ;;
esac
'''
MEMORY = 'MemoryError\n'
TORCH = ('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of '
         '79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.12 GiB memory in use.\n')
TRAIN = 'python3 -m relax.entrypoints.train "${ARGS[@]}"\n'


def script(place, text):  # noqa: F811
    place.script = place.script.replace(TRAIN, 'set -e\n' + text)


@pytest.mark.parametrize('why', [MEMORY, TORCH])
@pytest.mark.parametrize('text, program', [
    (TRAIN + 'python3 export.py --token abc\n', 'export.py'),
    (TRAIN + 'python3 export.py 2>&1 | tee export.log\nexit ${PIPESTATUS[0]}\n', 'export.py'),
    ('python3 tokenize.py\n' + TRAIN, 'tokenize.py'),
])
def test_the_training_is_left_alone(place, text, program, why):  # noqa: F811
    script(place, text)
    place.write(before=OTHERS, needs='20000', **{'fails.' + program: why})
    status, said = place.run()
    assert status == 1, said
    assert 'not retried: ' in said and f' in python3 {program}: that is not the training' in said, said
    assert 'abc' not in ''.join(line for line in said.splitlines() if line.startswith('oomrun'))
    assert sum(program in line for line in place.starts()) == 1
    assert all('12288' in line for line in place.starts() if 'relax' in line)
    assert program in place.ctl('explain', 'L1')


@pytest.mark.parametrize('text', [
    "trap 'python3 notify.py' EXIT\n" + TRAIN,
    'set +e\n' + TRAIN + 'code=$?\npython3 notify.py\nexit $code\n',
    'set +e\n(' + TRAIN.strip() + '; echo $? > code; exec python3 notify.py)\nexit $(cat code)\n',
    'python3 notify.py &\n' + TRAIN,
    'python3 tokenize.py\n' + TRAIN + 'python3 export.py\n',
])
def test_the_training_ran_out_whatever_follows(place, text):  # noqa: F811
    script(place, text)
    place.write(before=OTHERS)
    status, said = place.run()
    assert status == 0 and 'trained with 6144' in said, said
    assert 'is not the training' not in said


def test_the_traceback_names_the_program(place):  # noqa: F811
    """Without a look at the processes in time: it stays there long enough after its last words."""
    script(place, TRAIN + 'python3 export.py\n')
    place.write(before=OTHERS.replace('sleep 0.5\n    [', '['), needs='20000', **{'fails.export.py':
                'Traceback (most recent call last):\n  File "/x/export.py", line 3, in <module>\n    main()\n'
                '  File "/x/lib.py", line 9, in main\n    a = np.ones(n)\nMemoryError\n'})
    status, said = place.run()
    assert status == 1 and 'host out of memory in python3 export.py' in said, said
