# SPDX-License-Identifier: Apache-2.0
"""After a long good run the history says which step may be taken back."""
import sqlite3

from again import place  # noqa: F401


def test_the_step_before_the_last(place):  # noqa: F811
    # Fewer tokens are not enough.
    place.write(needs='10', before='case "$*" in *log-probs-chunk-size*) echo trained; exit 0 ;; esac\n')
    status, output = place.run()
    assert status == 0, output
    attempts = place.story()['attempts']
    assert len(attempts) >= 3
    assert 'try without it' not in place.ctl('history', 'L1')
    database = next(place.path.glob('state/**/*.db'))
    with sqlite3.connect(database) as db:
        db.execute('UPDATE attempt SET started_ms = started_ms - 7200000 WHERE number = ?',
                   (len(attempts),))
    db.close()
    told = place.ctl('history', 'L1')
    rung = attempts[-2]['decision']['rung']
    assert f'The step before the last (rung {rung}' in told and 'It ran for 2h' in told, told
    assert 'try without it' in place.ctl('explain', 'L1')
