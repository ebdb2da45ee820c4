# SPDX-License-Identifier: Apache-2.0
"""What is told of a period: `oomctl stats` and `oomctl report`; and of an installation: `doctor`."""
import json
import subprocess

from test_oomrun import LAUNCH, OOMCTL, place, run, script  # noqa: F401 (a fixture)


def oomctl(place, *words):
    where, env = place
    return subprocess.run([OOMCTL, *words], cwd=where, env=env, capture_output=True, text=True, timeout=60)


def test_report(place):
    good, bad = script(place), script(place, LAUNCH + ' && echo "a|b"', 'stop|here.sh')
    for _ in range(2):
        assert run(place, 'bash', good, options=['--no-memory']).returncode == 0
    assert run(place, 'bash', bad, options=['--max-retries', '0']).returncode == 1
    assert run(place, 'true').returncode == 0

    told = json.loads(oomctl(place, 'report', '--json').stdout)
    assert told['totals'] == {'lineages': 4, 'ran_out': 3, 'completed': 2, 'under_way': 0, 'gpu_hours': 0.0,
                              'median_changes': 1}
    assert told['causes'] == [{'framework': 'relax', 'domain': 'gpu', 'phase': 'unknown', 'failures': 3}]
    [again] = told['scripts']
    assert (again['name'], again['lineages'], again['failures']) == ('train.sh', 2, 2)
    assert {e['knob']: e['new'] for e in again['edits']} == {'--max-tokens-per-gpu': '6144'}
    [stopped] = told['stopped']
    assert 'no retry is allowed' in stopped['reason'] and 'fewer-tokens' in stopped['advice']

    page = oomctl(place, 'report').stdout
    assert '4 jobs were watched, 3 ran out of memory. Of these 2 completed all the same (67 %)' in page
    assert '| train.sh | 2 | 2 | max-tokens-per-gpu 12288 -> 6144 |' in page
    assert 'stop\\|here.sh' in page
    assert oomctl(place, 'report', '--since', '2000-01-01').stdout.split('\n')[2:] == page.split('\n')[2:]
    nothing = oomctl(place, 'report', '--since', '0s').stdout
    assert '0 jobs were watched, 0 ran out of memory.\n' in nothing and '##' not in nothing


def test_stats_of_a_period(place):
    assert run(place, 'bash', script(place)).returncode == 0
    told = json.loads(oomctl(place, 'stats', '--json', '--since', '1h').stdout)
    assert told['lineages'] == [{'framework': 'relax', 'state': 'completed', 'count': 1}]
    assert [(r['rung'], r['tried'], r['helped']) for r in told['rungs']] == [('fewer-tokens', 1, 1)]
    assert json.loads(oomctl(place, 'stats', '--json', '--since', '0s').stdout)['lineages'] == []
    wrong = oomctl(place, 'stats', '--since', 'yesterday')
    assert wrong.returncode != 0 and 'not "yesterday"' in wrong.stderr


def test_doctor(place):
    where, env = place
    told = {f['check']: f for f in json.loads(oomctl(place, 'doctor', '--json').stdout)}
    assert told['bin/oomrun']['finding'] == told['signatures']['finding'] == 'ok'
    assert told['head']['finding'] == 'ok' and 'policies' in told['head']['detail']
    (where / 'no.conf').write_text('head_sokket: /nonexistent/head.sock\n')
    ill = oomctl(place, 'doctor')
    assert ill.returncode == 1
    assert 'BAD  configuration: ' in ill.stdout and 'head_sokket' in ill.stdout


def test_history_says_why_it_is_empty(place):
    assert oomctl(place, 'history').stdout == 'No lineages yet: nothing has run under oomretry here.\n'
    assert oomctl(place, 'history', '--state', 'held').stdout == 'No lineage is like that.\n'
    wrong = oomctl(place, 'history', '--state', 'runing')
    assert wrong.returncode == 2 and '--state is running, waiting' in wrong.stderr
