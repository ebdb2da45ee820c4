# SPDX-License-Identifier: Apache-2.0
"""What a lost supervisor left is finished once, however long that takes: the report of the batch
script's end and the regular comparison both find it."""
import time

import kinds
from conftest import install, wait_for
from test_lost import wait_over

# A controller that hardly answers makes it slow.
SLOW_OOMRUN = """#!/bin/bash
if [ "$1" = --after ]; then
    echo "$2" >> LOG
    sleep 25
fi
exec REAL/bin/oomrun "$@"
"""


def test_nobody_acts_beside_one_who_is_slow(cluster, work, script):
    real = install(cluster.prefix.with_name(work.name + "-real"))
    log = work / "acts"
    log.write_text("")
    log.chmod(0o666)
    installed = cluster.prefix / "bin/oomrun"
    kept = installed.with_name("kept")
    installed.rename(kept)
    installed.write_text(SLOW_OOMRUN.replace("REAL", str(real)).replace("LOG", str(log)))
    installed.chmod(0o755)
    try:
        job, _ = kinds.submit(cluster, work, script, "no-requeue", "oomrun killed", "resubmit")
        lineage = wait_for(lambda: kinds.story_of(cluster, job), "the lineage")["lineage"]["id"]

        def acts():
            """Jobs of other tests may have to be looked after, too."""
            return [what for what in log.read_text().split() if what.startswith(f"{lineage}.")]
        wait_for(acts, "the agent to see it", 30)
        time.sleep(23)  # the regular comparison looks every five seconds, at what is quiet for ten
        assert len(acts()) == 1
        story = wait_over(cluster, job)
    finally:
        kept.rename(installed)
    assert story["lineage"]["state"] == "completed", (story["lineage"], job.output())
    assert len(story["lineage"]["jobs"]) == 2
    assert len(kinds.runs(work)) == 2
