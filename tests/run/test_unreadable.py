# SPDX-License-Identifier: Apache-2.0
"""bash runs a script up to where it understands it; what cannot be read cannot be changed."""
from again import place  # noqa: F401


def test_it_is_said_why_nothing_is_changed(place):  # noqa: F811
    place.script = place.script + 'if [ 1 = 1 ; then\n    echo done\n'
    status, said = place.run()
    assert status == 2, said
    assert len(place.starts()) == 1
    assert 'oomrun:   nothing in the script could be changed: script:9:' in said, said
