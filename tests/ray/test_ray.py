# SPDX-License-Identifier: Apache-2.0
"""Jobs on a real Ray cluster that run out of memory, are changed and submitted again."""
import contextlib
import json
import os
import signal
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import ray_jobs
from ray_harness import BUILD, Ray, Service, memory_bytes, wait_for
from ray_jobs import FLAGS, HOST_FLAGS, MODULE, flag, outcomes, rungs

AUTO = {"oom_retry": "auto"}


@pytest.fixture
def work(tmp_path):
    return ray_jobs.stage(tmp_path / "work")


@pytest.fixture(scope="module")
def climbing(ray, service, tmp_path_factory):
    """Two jobs side by side, for which several tests wait: flags in the entrypoint, flags in a
    script of the working directory."""
    work = ray_jobs.stage(tmp_path_factory.mktemp("climbing") / "work")
    ray.submit("grpo", work, *MODULE, *FLAGS, metadata={**AUTO, "owner": "alice"},
               env_vars=ray_jobs.environment(),
               options=["--entrypoint-num-cpus=0.5", "--entrypoint-memory=10000000",
                        '--entrypoint-resources={"worker": 0.1}'])
    ray.submit("script", work, "bash", "run.sh", metadata=AUTO, env_vars=ray_jobs.environment())


def test_gpu_oom_climbs_the_ladder(ray, service, climbing):
    story = service.wait("grpo", "completed", "stopped", "failed")
    count = len(story["attempts"])
    assert count >= 3 and outcomes(story) == ["oom"] * (count - 1) + ["completed"]
    assert len(set(rungs(story))) >= 2
    first = story["attempts"][0]["incident"]
    assert (first["domain"], first["framework"]) == ("gpu", "relax")
    assert first["phase"] in ("forward", "backward")
    assert {attempt["mode"] for attempt in story["attempts"][1:]} == {"resubmit"}

    ids = ["grpo"] + [f"grpo-oom{n}" for n in range(2, count + 1)]
    assert [attempt["job"] for attempt in story["attempts"]] == ids
    lines = [line for line in service.lineages() if "grpo" in line["jobs"]]
    assert len(lines) == 1 and lines[0]["jobs"] == ids
    assert "grpo-oom2" in service.oomctl("history", "grpo")

    jobs = ray.jobs()
    assert set(ids) == {name for name in jobs if name.startswith("grpo")}
    assert "RayTaskError(OutOfMemoryError)" in ray.logs("grpo")
    last = jobs[ids[-1]]
    assert last["status"] == "SUCCEEDED"
    assert int(flag(last, "--max-tokens-per-gpu")) < 12288
    assert last["metadata"] == {**AUTO, "owner": "alice", "oom_attempt": str(count),
                                "oom_former": ids[-2],
                                "oom_lineage": str(story["lineage"]["id"])}
    assert last["runtime_env"]["working_dir"] == jobs["grpo"]["runtime_env"]["working_dir"]
    assert ray_jobs.environment().items() <= last["runtime_env"]["env_vars"].items()
    assert resources(ray, ids[-1]) == resources(ray, "grpo") == {
        "CPU": 0.5, "memory": 1e7, "worker": 0.1}


def resources(ray, submission):
    actors = ray.get("/api/v0/actors?detail=true&filter_keys=name&filter_predicates=%3D"
                     f"&filter_values=_ray_internal_job_actor_{submission}")
    return actors["data"]["result"]["result"][0]["required_resources"]


def test_script_of_the_working_directory(ray, service, climbing):
    story = service.wait("script", "completed", "stopped", "failed")
    assert outcomes(story)[-1] == "completed"
    last = ray.job(story["attempts"][-1]["job"])
    former = ray.job("script")
    assert last["entrypoint"] == former["entrypoint"] == "bash run.sh"
    assert last["runtime_env"]["working_dir"] != former["runtime_env"]["working_dir"]
    package = last["runtime_env"]["working_dir"][len("gcs://"):-len(".zip")]
    unpacked = list(ray.temp.glob(f"?/session_2*/runtime_resources/working_dir_files/{package}"))
    assert unpacked
    for directory in unpacked:
        assert "12288" not in (directory / "run.sh").read_text()
        assert (directory / "driver.py").read_text() == (ray_jobs.HERE / "driver.py").read_text()
    assert "started as run.sh" in ray.logs(last["submission_id"])
    assert "--- run.sh" in service.oomctl("explain", "script")


@pytest.fixture
def watched(ray):
    """A node of its own for the job whose memory Ray watches: no other job shall be killed for it."""
    process = ray.second("127.0.0.3", "watched", RAY_memory_monitor_refresh_ms="100")
    try:
        yield "watched"
    finally:
        ray.end(process, "watched")


def test_host_oom_of_the_memory_monitor(ray, service, watched, tmp_path):
    """Really allocated, and really killed by Ray."""
    if ray.margin < 3 << 30:
        pytest.skip(f"{memory_bytes('MemAvailable') >> 20} MiB of free memory are too few to fill")
    used = memory_bytes("MemTotal") - memory_bytes("MemAvailable")
    work = ray_jobs.stage(tmp_path / "work", real_sample_bytes=int(ray.margin * 1.3) // 10000,
                          host_gib=100000, node=watched)
    ray.submit("host", work, *MODULE, *HOST_FLAGS, env_vars=ray_jobs.environment(),
               program=[str(BUILD / "bin/oomctl"), "ray", "submit", "--"])
    story = service.wait("host", "completed", "stopped", "failed")
    assert outcomes(story) == ["oom", "completed"], (service.oomctl("explain", "host"), used)
    incident = story["attempts"][0]["incident"]
    assert (incident["oom"], incident["domain"]) == (True, "host")
    assert rungs(story) == ["smaller-host-buffers"]
    assert "ray.exceptions.OutOfMemoryError" in ray.logs("host")
    assert int(flag(ray.job("host-oom2"), "--streaming-buffer-size")) == 2500


def test_who_is_not_retried(ray, service, work, tmp_path):
    """Not opted in; failed otherwise; stopped by its user; supervised by somebody else."""
    calm = ray_jobs.stage(tmp_path / "calm",
                          failure={"kind": "traceback", "phase": "forward", "step": 1})
    slow = ray_jobs.stage(tmp_path / "slow", seconds=60)
    env = ray_jobs.environment()
    ray.submit("plain", work, *MODULE, *FLAGS, env_vars=env)
    ray.submit("supervised", work, *MODULE, *FLAGS, metadata={**AUTO, "oom_supervisor": "oomrun"},
               env_vars=env)
    ray.submit("buggy", calm, *MODULE, *HOST_FLAGS, metadata=AUTO, env_vars=env)
    ray.submit("cancelled", slow, *MODULE, *FLAGS, metadata=AUTO, env_vars=env)
    service.wait("cancelled", "running")
    ray.wait("cancelled", "RUNNING")
    listed = {row["job"]: row["retry"] for row in json.loads(
        service.oomctl("ray", "list", "--all", "--json"))}
    assert listed["plain"] == "no: not opted in" and listed["cancelled"] == "auto"
    assert listed["supervised"] == "it runs under oomrun, which owns the retry"
    assert "cancelled" in (text := service.oomctl("ray", "list")) and "plain" not in text
    subprocess.run([str(ray.bin / "ray"), "job", "stop", "--no-wait", "--address", ray.url,
                    "cancelled"], env=ray.environment(), check=True, stdout=subprocess.DEVNULL)
    for name in ("plain", "supervised", "buggy"):
        assert ray.wait(name)["status"] == "FAILED", name
    cancelled, buggy = service.wait("cancelled", "cancelled"), service.wait("buggy", "failed")
    assert "stopped by its user" in cancelled["lineage"]["reason"]
    assert "no sign of memory" in buggy["lineage"]["reason"]
    time.sleep(5)
    assert not [name for name in ray.jobs()
                if "-oom" in name and name.split("-")[0] in ("plain", "supervised", "buggy",
                                                             "cancelled")]
    assert not [line for line in service.lineages()
                if {"plain", "supervised"} & set(line["jobs"])]


def test_processes_that_cannot_be_seen(ray, service, tmp_path):
    """The cluster might live inside a Slurm job, whose supervisor retries: nobody knows."""
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("/proc can only be mounted by root")
    blind = Service(ray)
    try:
        blind.start(*hidden)
        ray.submit("unseen", ray_jobs.stage(tmp_path / "work"), "true", metadata=AUTO)
        service.wait("unseen", "completed")
        wait_for(lambda: "ray job unseen: left alone: whether a Slurm job owns" in blind.log(),
                 "the word on it", 60)
        assert "/proc is mounted with hidepid here" in blind.log()
        assert not blind.lineages()
    finally:
        blind.stop()


def test_a_job_that_hangs(ray, service, tmp_path):
    """Its actor has run out, its driver waits: it is stopped, and that is no stop by its user, not
    even for a watcher that was started meanwhile. Nor does it matter that Ray deletes the working
    directory, as it does when ten minutes have gone since somebody asked for it."""
    work = ray_jobs.stage(tmp_path / "work", hangs=True)
    ray.submit("hangs", work, *MODULE, *FLAGS, metadata={
        **AUTO, "oom_max_retries": "1", "oom_grace_s": "8"}, env_vars=ray_jobs.environment())
    uri = ray.wait("hangs", "RUNNING")["runtime_env"]["working_dir"]
    wait_for(lambda: "OutOfMemoryError" in ray.logs("hangs"), "the traceback")
    wait_for(lambda: "nothing new for 8 s: stopped" in service.log(), "the job to be stopped")
    service.kill()
    assert ray.wait("hangs")["status"] == "STOPPED", ray.logs("hangs")
    ray.delete_package(uri)
    service.start()
    story = service.wait("hangs", "stopped", "completed", "failed", "cancelled")
    assert [attempt["job"] for attempt in story["attempts"]] == ["hangs", "hangs-oom2"]
    assert outcomes(story)[0] == "oom" and story["attempts"][0]["incident"]["domain"] == "gpu"
    assert ray.job("hangs-oom2")["runtime_env"]["working_dir"] == uri and ray.has_package(uri)


def test_the_head_ends_in_the_middle(ray, service, work):
    """Killed while the job runs; it fails meanwhile. Once more when all is over."""
    ray.submit("restart", work, *MODULE, *FLAGS, metadata={**AUTO, "oom_max_retries": "1"},
               env_vars=ray_jobs.environment())
    service.wait("restart", "running")
    service.kill()
    ray.wait("restart", "FAILED")
    service.start()
    story = service.wait("restart", "stopped", "completed")
    assert [attempt["job"] for attempt in story["attempts"]] == ["restart", "restart-oom2"]
    service.kill()
    before = set(ray.jobs())
    known = len(service.log())
    service.start()
    wait_for(lambda: " is session_" in service.log()[known:], "the cluster to be found again")
    time.sleep(4)
    assert set(ray.jobs()) == before
    assert service.story("restart") == story


def stop_and_go(ray, seconds):
    """The dashboard's processes do not answer for a while."""
    pids = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            name = words.split(b"\0")[0]
            if f"{ray.temp}/r".encode() in words and (
                    b"dashboard/dashboard.py" in words or name.startswith(b"ray-dashboard")):
                pids.append(int(entry.name))
    assert pids, "the dashboard's processes were not found"
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def test_the_dashboard_is_away(ray, service, work):
    ray.submit("away", work, *MODULE, *FLAGS, metadata={**AUTO, "oom_max_retries": "1"},
               env_vars=ray_jobs.environment())
    service.wait("away", "running")
    known = len(service.log())
    stop_and_go(ray, 61)
    story = service.wait("away", "stopped", "completed")
    assert "answers again" in service.log()[known:]
    assert [attempt["job"] for attempt in story["attempts"]] == ["away", "away-oom2"]
    assert {name for name in ray.jobs() if name.startswith("away")} == {"away", "away-oom2"}


def test_a_new_cluster_at_the_same_address(ray_programs, tmp_path):
    """The former one ends with a running job; the new one gets a job of the same name, and wants a
    token."""
    env = ray_jobs.environment()
    # Not below pytest's own directories: those are closed to the agent's user.
    place = Path(tempfile.mkdtemp(prefix="ot-"))
    place.chmod(0o755)
    token = place / "token"
    token.write_text("a-token-that-is-long-enough-for-ray-0123456789\n")
    token.chmod(0o644)
    slow, fast = ray_jobs.stage(tmp_path / "slow", seconds=300), ray_jobs.stage(tmp_path / "fast")
    one = Ray(ray_programs)
    service = Service(one, f"token={token}")
    try:
        one.start(worker=False)
        service.start()
        one.submit("train", slow, *MODULE, *FLAGS, metadata=AUTO, env_vars=env)
        former = service.wait("train", "running")["lineage"]["id"]
        one.stop()
        one.token = token.read_text().strip()
        one.env = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": one.token}
        one.start(worker=False)
        one.submit("train", fast, *MODULE, *FLAGS, metadata={**AUTO, "oom_max_retries": "1"},
                   env_vars=env)
        story = service.wait("train", "stopped", "completed", "failed")
        wait_for(lambda: len(service.lineages()) == 2, "the two lineages")
        lineages = {line["id"]: line for line in service.lineages()}
        assert lineages[former]["state"] == "failed"
        assert "ended, and with it the job" in lineages[former]["reason"]
        assert lineages[former]["jobs"] == ["train"]
        new, = set(lineages) - {former}
        story = service.wait("train", "stopped", "completed")
        assert story["lineage"]["id"] == new
        assert [attempt["job"] for attempt in story["attempts"]] == ["train", "train-oom2"]
        assert set(one.jobs()) == {"train", "train-oom2"}
        assert lineages[former]["cluster"] != lineages[new]["cluster"]
    finally:
        shutil.rmtree(place, ignore_errors=True)
        service.stop()
        one.remove()
