# SPDX-License-Identifier: Apache-2.0
"""After a long good run the history says which step may be taken back."""
import sqlite3

from again import place  # noqa: F401


# Less is missing after each attempt, and the last remedy is what helps.
TRAINER = """oom() {
    echo '  File "/x/relax/backends/megatron/actor.py", line 424, in train_actor'
    echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate $((9 - $(wc -l < starts) % 6)).00 GiB." \
         "GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is free."
}
case "$*" in *log-probs-chunk-size*) echo trained; exit 0 ;; esac
"""


def test_the_step_before_the_last(place):  # noqa: F811
    # Fewer tokens are not enough.
    place.write(needs='10', before=TRAINER)
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


def rungs(place, lineage):  # noqa: F811
    return [(a['decision'] or {}).get('rung') for a in place.story(lineage)['attempts']]


def test_one_step_less_is_tried_when_the_owner_wishes(place):  # noqa: F811
    place.write(needs='10', before=TRAINER)
    assert place.run()[0] == 0
    step = place.story('L1')['attempts'][-2]['edits']
    # Without being asked for, everything that worked is taken.
    assert place.run()[0] == 0
    assert rungs(place, 'L2') == [None, 'as-before']
    assert place.run('--step-back')[0] == 0
    assert rungs(place, 'L3') == [None, 'step-back']
    total = {e['knob'] for e in place.story('L3')['attempts'][1]['total_edits']}
    assert '--log-probs-chunk-size' in total and not total & {e['knob'] for e in step if not e['old']}
    # Where the step was needed after all, it is put back.
    place.write(before='case "$*" in *log-probs-chunk-size*) case "$*" in *%s*) echo trained; exit 0 ;; esac ;; esac\n'
                % step[0]['knob'].lstrip('-'))
    status, output = place.run(env={'OOMRETRY_STEP_BACK': '1'})
    assert status == 0, output
    assert rungs(place, 'L4') == [None, 'step-back', 'as-before']


def test_a_step_that_went_further_goes_back_to_where_it_was(place):  # noqa: F811
    place.write(needs='10', before='case "$*" in *log-probs-chunk-size*) echo trained; exit 0 ;; esac\n')
    assert place.run()[0] == 0
    assert rungs(place, 'L1') == [None, 'fewer-tokens', 'optimizer-offload', 'fewer-tokens', 'log-probs-chunks']
    further = place.story('L1')['attempts'][-2]['edits'][0]
    assert place.run('--step-back')[0] == 0
    assert rungs(place, 'L2') == [None, 'step-back']
    total = {e['knob']: e['new'] for e in place.story('L2')['attempts'][1]['total_edits']}
    assert total[further['knob']] == further['old']
