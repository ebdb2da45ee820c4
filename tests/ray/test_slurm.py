# SPDX-License-Identifier: Apache-2.0
"""Ray inside a Slurm job: the batch script starts a cluster and submits to it. Slurm's supervisor
owns the retry, although the agent watches that dashboard with a rule for all of its jobs."""
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import ray_jobs
from ray_harness import REPO, end_processes, free_port

# As people write it, with ports that are free here. Nobody stops the cluster: Slurm would, at the
# job's end. Its first lines tell what was there before it.
SCRIPT = """#!/bin/bash
#SBATCH --oom-retry=auto
set -e
ps -eo args | grep -c '{temp}/[s]ession_' >>left || true
ss -Hltn 'sport = {gcs} or sport = {port}' | wc -l >>left
start() {{
   ray start --head --node-ip-address=127.0.0.1 --port={gcs} --dashboard-port={port} \\
   --dashboard-agent-listen-port={agent} --ray-client-server-port={client} --temp-dir={temp} \\
   --min-worker-port=0 --max-worker-port=0 --num-cpus=4 --num-gpus=2 --resources='{{"worker": 1}}' \\
   --object-store-memory=100000000 --disable-usage-stats
}}
# It gives up after 30 s, which a busy machine may need.
start || {{ pkill -f '{temp}/[s]ession_'; sleep 3; start; }}
for try in $(seq 120); do
   ray job list --address http://127.0.0.1:{port} >/dev/null 2>&1 &&
      (echo >/dev/tcp/127.0.0.1/{agent}) 2>/dev/null && break
   sleep 1
done
sleep 3
ARGS=(
{flags}
)
ray job submit --address="http://127.0.0.1:{port}" --working-dir . \\
   --runtime-env-json='{{"env_vars": {{"FAKE_TRAINER": "trainer.json"}}}}' \\
   -- python3 -m relax.entrypoints.train "${{ARGS[@]}}"
"""


@pytest.fixture
def slurm(ray_programs):
    """The private cluster of tests/cluster, whose agent also watches a dashboard."""
    if os.geteuid() != 0:
        pytest.skip("a private Slurm needs root")
    spec = importlib.util.spec_from_file_location(
        "cluster_of_slurm", REPO / "tests/cluster/conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    home = Path(tempfile.mkdtemp(prefix="os-"))
    home.chmod(0o755)
    port, temp = free_port(), home / "t"
    temp.mkdir()
    os.chown(temp, module.OWNER.pw_uid, module.OWNER.pw_gid)
    one = module.Cluster(home / "c", "--agent-conf",
                         f'ray_clusters: ["http://127.0.0.1:{port} retry=auto temp={temp}"]')
    one.port, one.temp, one.owner = port, temp, module.OWNER
    try:
        one.start()
        yield one
    finally:
        one.stop()
        end_processes(f"{temp}/")  # where Slurm does not track them by cgroup, they outlive the job
        shutil.rmtree(home, ignore_errors=True)


def test_one_retry_for_one_failure(slurm, ray_programs):
    work = ray_jobs.stage(slurm.dir.parent / "work")
    # Two changes are enough for so many tokens (the first is against fragmentation, as the numbers
    # of the message ask), and each attempt starts a cluster.
    flags = "\n".join(f"   {word}".replace("12288", "8192") for word in ray_jobs.FLAGS)
    (work / "job.sh").write_text(SCRIPT.format(
        flags=flags, port=slurm.port, gcs=free_port(), agent=free_port(), client=free_port(),
        temp=slurm.temp))
    for path in [work, *work.rglob("*")]:
        os.chown(path, slurm.owner.pw_uid, slurm.owner.pw_gid)
    job = slurm.sbatch(work, "--mem=0", "job.sh",
                       env={"PATH": f"{ray_programs}:{os.environ['PATH']}", "HOME": str(work)})
    record = job.wait(seconds=900)
    assert record["JobState"] == "COMPLETED", job.output()[-6000:]
    story = json.loads(slurm.oomctl("history", "--json", job.id).stdout)
    count = len(story["attempts"])
    assert count == 3 and ray_jobs.outcomes(story) == ["oom"] * (count - 1) + ["completed"]
    assert {attempt["mode"] for attempt in story["attempts"][1:]} == {"inplace"}
    # Nothing of an attempt was left for the next one: processes, ports.
    assert (work / "left").read_text().split() == ["0", "0"] * count
    # The watcher saw each of these clusters and left its job alone.
    log = slurm.log("oomagent.out")
    sessions = set(re.findall(r"is (session_\S+), ", log))
    assert len(sessions) >= count, log
    assert log.count("left alone: its cluster lives inside") == count, log
    # As many submissions as attempts, one in each cluster, and no lineage of Ray.
    drivers = list(slurm.temp.glob("session_2*/logs/job-driver-*.log"))
    assert len(drivers) == count, drivers
    everything = json.loads(slurm.oomctl("history", "--json", "--all", root=True).stdout)
    assert [line["scheduler"] for line in everything["lineages"]] == ["slurm"]
