# SPDX-License-Identifier: Apache-2.0
"""slurmctld is being restarted when the job runs out: it begins again when the controller is back."""
import os
import signal

from conftest import wait_for
from kinds import is_over, runs, write_job


def test_waits_for_the_controller(cluster, work, script):
    path, memory = write_job(work, script, "gpu")
    trainer = work / "bin/python3"
    text = trainer.read_text()
    trainer.write_text(text.replace("    exit 1\n",
                                    f"    while [ ! -e {work}/go ]; do sleep 0.1; done\n    exit 1\n"))
    assert trainer.read_text() != text
    job = cluster.sbatch(work, "--oom-retry=relax", f"--mem={memory}", "--open-mode=append", path)
    wait_for(lambda: len(runs(work)) == 1, "the first attempt")
    os.kill(cluster.record["daemons"]["slurmctld"]["pid"], signal.SIGTERM)
    try:
        wait_for(lambda: cluster.run("scontrol", "ping").returncode != 0, "its end")
        (work / "go").touch()
        wait_for(lambda: "waiting for the scheduler" in job.output(), "the word of it")
        assert len(runs(work)) == 1
    finally:
        cluster.devcluster("restart", "slurmctld")
    record = job.wait("COMPLETED")
    assert record["Restarts"] == "0"
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "inplace"], job.output()
