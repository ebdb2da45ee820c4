# SPDX-License-Identifier: Apache-2.0
"""What only another machine has: a node with an address, a directory and an agent of its own. The
directory is closed to the head's user, so that nothing of it is read from here."""
import json
import os
import subprocess
import urllib.error

import pytest

import ray_jobs
from ray_harness import BUILD, Node, wait_for
from ray_jobs import FLAGS, MODULE, outcomes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user's directory needs root")
ADDRESS = "127.0.0.2"


@pytest.fixture(scope="module")
def node(ray, service):
    """The second machine: (ends it, its directory)."""
    temp = ray.temp / "second"
    temp.mkdir(mode=0o700)
    process = ray.second(ADDRESS, temp.name)
    agent = Node(service, ADDRESS, temp)
    try:
        yield lambda: ray.end(process, temp.name), temp
    finally:
        ray.end(process, temp.name)
        agent.stop()


def test_script_on_another_machine(ray, service, node, tmp_path):
    """The driver runs there: so does its working directory lie there only."""
    work = ray_jobs.stage(tmp_path / "work")
    ray.submit("there", work, "bash", "run.sh", env_vars=ray_jobs.environment(),
               metadata={"oom_retry": "auto", "oom_max_retries": "1"},
               options=['--entrypoint-resources={"second": 0.1}'])
    story = service.wait("there", "stopped", "failed", "completed")
    assert len(story["attempts"]) == 2 and outcomes(story)[0] == "oom", service.log()
    last = ray.job("there-oom2")
    package = last["runtime_env"]["working_dir"][len("gcs://"):-len(".zip")]
    assert package not in ray.job("there")["runtime_env"]["working_dir"]
    unpacked, = node[1].glob(f"session_2*/runtime_resources/working_dir_files/{package}")
    assert (unpacked / "run.sh").read_text() != (work / "run.sh").read_text()
    assert (unpacked / "driver.py").read_text() == (ray_jobs.HERE / "driver.py").read_text()
    assert not list((service.dir / "tmp").iterdir())


def test_logs_of_a_node_that_is_gone(ray, service, node, tmp_path):
    """It dies before anybody has looked. One driver ran elsewhere and knows only that its actor died
    with its node; the other one's own log is on that node."""
    end, temp = node
    env = ray_jobs.environment()
    alone = ray_jobs.stage(tmp_path / "alone", alone=True, node="second")
    hangs = ray_jobs.stage(tmp_path / "hangs", hangs=True, node="second")
    wish = {"oom_retry": "auto", "oom_max_retries": "0", "oom_grace_s": "0"}
    service.kill()
    ray.submit("actor", alone, *MODULE, *FLAGS, env_vars=env, metadata=wish)
    ray.submit("driver", hangs, *MODULE, *FLAGS, env_vars=env, metadata=wish,
               options=['--entrypoint-resources={"second": 0.1}'])

    def told():
        return [path for path in temp.glob("session_2*/logs/worker-*.err")
                if "OutOfMemoryError" in path.read_text()]
    wait_for(told, "the worker's traceback")
    wait_for(lambda: "OutOfMemoryError" in ray.logs("driver", temp.name), "the driver's traceback")
    end()
    for name in ("actor", "driver"):
        assert ray.wait(name)["status"] == "FAILED"
    assert "OutOfMemoryError" not in ray.logs("actor")
    service.start()
    for name, file in (("actor", f"{ADDRESS}:worker-"), ("driver", f"{ADDRESS}:job-driver-driver.")):
        story = service.wait(name, "stopped", "failed", "completed")
        incident = story["attempts"][0]["incident"]
        assert (incident["oom"], incident["domain"], incident["framework"]) == (
            True, "gpu", "relax"), service.log()
        assert incident["cause"]["file"].startswith(file)
