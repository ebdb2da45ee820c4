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


@pytest.fixture
def node(ray, service, request):
    """The second machine: (ends it, its directory)."""
    temp = ray.temp / request.node.name[:12]
    temp.mkdir(mode=0o700)
    process = ray.second(ADDRESS, temp.name)
    agent = Node(service, ADDRESS, temp)
    try:
        yield lambda: ray.end(process, temp.name), temp
    finally:
        ray.end(process, temp.name)
        agent.stop()
        wait_for(lambda: all(node["state"] == "DEAD" for node in ray.nodes()
                             if node["node_ip"] == ADDRESS), "Ray to miss the node")


def test_logs_of_a_node_that_is_gone(ray, service, node, tmp_path):
    """The driver knows only that its actor died with its node."""
    end, temp = node
    work = ray_jobs.stage(tmp_path / "work", alone=True, node="second")
    ray.submit("gone", work, *MODULE, *FLAGS, env_vars=ray_jobs.environment(),
               metadata={"oom_retry": "auto", "oom_max_retries": "0"})

    def told():
        return [path for path in temp.glob("session_2*/logs/worker-*.err")
                if "OutOfMemoryError" in path.read_text()]
    wait_for(told, "the worker's traceback")
    end()
    story = service.wait("gone", "stopped", "failed", "completed")
    assert "OutOfMemoryError" not in ray.logs("gone")
    incident = story["attempts"][0]["incident"]
    assert (incident["oom"], incident["domain"], incident["framework"]) == (True, "gpu", "relax"), \
        service.log()
    assert incident["cause"]["file"].startswith(f"{ADDRESS}:worker-")


def test_driver_of_a_node_that_is_gone(ray, service, node, tmp_path):
    """It hangs, and its node dies before anybody has read that it has run out."""
    end, temp = node
    work = ray_jobs.stage(tmp_path / "work", hangs=True, node="second")
    service.kill()
    ray.submit("lost", work, *MODULE, *FLAGS, env_vars=ray_jobs.environment(),
               options=['--entrypoint-resources={"second": 0.1}'],
               metadata={"oom_retry": "auto", "oom_max_retries": "0", "oom_grace_s": "0"})
    wait_for(lambda: "OutOfMemoryError" in ray.logs("lost", "*"), "the driver's traceback")
    end()
    ray.wait("lost", "FAILED")
    service.start()
    story = service.wait("lost", "stopped", "failed", "completed")
    assert story["attempts"][0]["incident"]["domain"] == "gpu", service.log()
    assert story["attempts"][0]["incident"]["cause"]["file"] == f"{ADDRESS}:job-driver-lost.log"


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
