# SPDX-License-Identifier: Apache-2.0
"""A script that trains twice, with settings of its own each time: what one of them needs is no change
of the other."""
import pytest

from again import place  # noqa: F401

TRAIN = 'python3 -m relax.entrypoints.train "${ARGS[@]}"\n'
# A warm-up of fewer tokens; both run long enough to be seen on a busy machine.
WARM_UP = 'python3 -m relax.entrypoints.train "${ARGS[@]}" --save warm-up --max-tokens-per-gpu %d\n'


@pytest.mark.parametrize('text, fits, tokens', [
    # The second runs out.
    ('set -e\n' + WARM_UP % 4096 + TRAIN, 7000, {'warm-up': '4096', 'run': '6144'}),
    ('set -e\n' + WARM_UP % 4096 + TRAIN.strip() + ' 2>&1 | tee run.log\n', 7000, {'warm-up': '4096', 'run': '6144'}),
    # The first does.
    ('set -e\n' + WARM_UP % 16384 + TRAIN, 13000, {'warm-up': '8192', 'run': '12288'}),
])
def test_the_other_is_left_alone(place, text, fits, tokens):  # noqa: F811
    place.script = place.script.replace(TRAIN, text)
    place.write(before='sleep 0.7\n', needs=str(fits))
    status, said = place.run()
    assert status == 0, said
    last = {}
    for line in place.starts():
        last['warm-up' if 'warm-up' in line else 'run'] = line.split()[-1]
    assert last == tokens, said
    assert said.count('oomrun: attempt') == 2, said


def test_both_run_out(place):  # noqa: F811
    place.script = place.script.replace(TRAIN, 'set -e\n' + WARM_UP % 16384 + TRAIN)
    place.write(before='sleep 0.7\n')
    status, said = place.run()
    assert status == 0, said
    assert all(int(line.split()[-1]) <= 7000 for line in place.starts()[-2:]), said


@pytest.mark.parametrize('options', ['-eo pipefail', '-euo pipefail', '-e -o pipefail', '--norc -xo pipefail'])
def test_options_of_the_shell(place, options):  # noqa: F811
    """The script is the first word that is none of them."""
    (place.path / 'outer.sh').write_text(f'bash {options} inner.sh\n')
    (place.path / 'inner.sh').write_text(place.script.replace('MORE', ''))
    place.script = place.script.replace(TRAIN, f'exec bash {options} outer.sh\n')
    status, said = place.run()
    assert status == 0 and 'trained with 6144' in said, said
    assert '12288 -> 6144' in said
