# SPDX-License-Identifier: Apache-2.0
"""bash's completion of oomctl offers what the program has."""
import os
import subprocess

import pytest

from programs import OOMCTL, ROOT

TRY = '''
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_oomctl
printf '%s\\n' "${COMPREPLY[@]}"
'''


@pytest.mark.parametrize('words, offered', [
    (['hi'], {'history'}),
    (['s'], {'show', 'stop', 'settle', 'stats', 'signatures'}),
    (['policy', 'ro'], {'rollback'}),
    (['policy', 'show', 're'], {'relax'}),
    (['history', '--s'], {'--since=', '--state='}),
    (['nothing', ''], set()),
])
def test_completion(tmp_path, words, offered):
    completion = os.path.join(ROOT, 'contrib', 'completions', 'oomctl')
    env = {**os.environ, 'HOME': str(tmp_path), 'XDG_STATE_HOME': str(tmp_path)}
    done = subprocess.run(['bash', '-c', TRY, 'bash', completion, OOMCTL, *words], env=env, timeout=60,
                          capture_output=True, text=True)
    assert done.stderr == ''
    assert offered <= set(done.stdout.split())
    assert all(word.startswith(words[-1]) for word in done.stdout.split())
    assert offered or not done.stdout.split()
