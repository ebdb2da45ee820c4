# SPDX-License-Identifier: Apache-2.0
"""Frameworks that begin again by themselves after running out of memory."""
import time

from again import place  # noqa: F401

# Begins again by itself, twice, each time in the same way; then gives up.
RELAX = '''for n in 1 2; do
    echo "=== Starting GLOBAL restart #$n (max=2) ==="
    sleep 1.5
    echo "$* (own $n)" >> starts
    oom
done
echo "Global restart count (3) exceeded maximum allowed (2). Refusing to restart - terminating process."
'''


def test_ended_at_its_own_restart(place):
    """The restart would fail as the start did: the next attempt begins instead, with other
    settings."""
    place.write(after=RELAX.replace('sleep 1.5', 'sleep 30'))
    began = time.monotonic()
    status, output = place.run()
    assert status == 0, output
    assert time.monotonic() - began < 25
    assert 'begins again by itself' in output and 'trained with' in output
    assert not any('own' in start for start in place.starts())
    story = place.story()
    assert [attempt['outcome'] for attempt in story['attempts']] == ['oom', 'completed']
    assert story['attempts'][0]['incident']['own_restarts'] == 1
    assert 'so the attempt was ended' in place.ctl('explain', 'L1')


def test_the_policy_lets_it_go_on(place):
    """end_at 0: its own restarts are no attempts, and what they took is told."""
    place.write(after=RELAX)
    place.ctl('policy', 'set', 'relax', 'own_restarts.end_at', '0', '-m', 'let it')
    status, output = place.run()
    assert status == 0, output
    assert 'began again by itself 2 times with the same settings, which took' in output
    story = place.story()
    assert len(story['attempts']) == 2
    exit_data = story['attempts'][0]['evidence']['exit']
    assert exit_data['own_restarts'] == 2 and 500 < exit_data['own_restarts_ms'] < 20000
    assert 'began again by itself 2 times' in place.ctl('explain', 'L1')


def test_turned_off_in_the_next_attempts(place):
    place.write(after=RELAX)
    place.ctl('policy', 'set', 'relax', 'own_restarts.turn_off', 'true', '-m', 'off')
    status, output = place.run(more='--max-global-restart 2')
    assert status == 0, output
    starts = place.starts()
    assert '--max-global-restart 2' in starts[0]
    assert len(starts) >= 2 and all('--max-global-restart 0' in start for start in starts[1:])


def test_one_that_gets_through_has_not_failed(place):
    place.write(after='echo "=== Starting GLOBAL restart #1 (max=2) ==="; sleep 1; '
                      'echo "trained after all"; exit 0')
    place.ctl('policy', 'set', 'relax', 'own_restarts.end_at', '2', '-m', 'once')
    status, output = place.run()
    assert status == 0 and 'oomrun:' not in output
    assert place.story()['lineage']['state'] == 'completed'
    assert len(place.starts()) == 1


def test_not_ended_when_there_is_no_next_attempt(place):
    """Without retries left the framework's own way is the only one."""
    place.write(after='echo "=== Starting GLOBAL restart #1 (max=2) ==="; sleep 1; '
                      'echo "trained after all"; exit 0')
    status, output = place.run('--max-retries', '0')
    assert status == 0, output
    assert 'trained after all' in output and 'oomrun:' not in output


def test_torchrun_says_it_on_several_nodes(place):
    """One restart of all, whoever says it."""
    place.write(after='for node in 1 2; do echo "[default] Worker group FAILED. 3/3 attempts left; '
                      'will restart worker group"; done; sleep 30; oom')
    status, output = place.run()
    assert status == 0, output
    assert '(restart 1)' in output
    assert place.story()['attempts'][0]['incident']['own_restarts'] == 1
