# SPDX-License-Identifier: Apache-2.0
"""Jobs that run out of memory on a real cluster, are changed, and finish under the same job id."""
import json
import os
import re
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest

import training
from conftest import OWNER, Job, wait_for
from kinds import is_over
from training import dependent, history, hog, rungs, starts


@pytest.mark.parametrize("name", ["relax", "areal"])
def test_in_place(cluster, work, name):
    """Two different rungs are needed; nobody sees a failure in between."""
    training.stage(work)
    job = cluster.sbatch(work, f"{name}.sh", env=training.environment(work, name))
    after = dependent(cluster, work, job)
    record = job.wait()
    assert record["JobState"] == "COMPLETED", job.output()
    assert (record["ExitCode"], record["Restarts"]) == ("0:0", "0")
    assert after.wait()["JobState"] == "COMPLETED"

    ends = [start["status"] for start in starts(work)]
    assert ends[-1] == "ok" and set(ends[:-1]) == {"oom"} and len(ends) >= 3
    story = history(cluster, job)
    assert story["lineage"]["state"] == "completed"
    assert len(story["attempts"]) == len(ends)
    assert len(set(rungs(story))) >= 2
    assert {attempt["mode"] for attempt in story["attempts"][1:]} == {"inplace"}
    assert [attempt["outcome"] for attempt in story["attempts"]] == (
        ["oom"] * (len(ends) - 1) + ["completed"])


@pytest.mark.parametrize("name", ["relax", "areal"])
def test_plan_decides_as_the_cluster_did(cluster, work, name):
    training.stage(work)
    plain = cluster.sbatch(work, "--oom-retry=off", f"{name}.sh",
                           env=training.environment(work, name))
    assert plain.wait()["JobState"] == "FAILED"
    # Another argument: else it would begin with what helped the same submission before.
    job = cluster.sbatch(work, f"{name}.sh", "plan", env=training.environment(work, name))
    job.wait()
    first = next(attempt["decision"] for attempt in history(cluster, job)["attempts"]
                 if attempt.get("decision"))
    done = cluster.oomctl("plan", "--json", "--exit-code", "1", "--script", work / f"{name}.sh",
                          plain.path)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["action"] == "retry"
    assert plan["rung"] == first["rung"] and plan["policy"] == first["policy"]
    strip = [{key: edit[key] for key in ("knob", "old", "new")} for edit in plan["edits"]]
    assert strip == [{key: edit[key] for key in ("knob", "old", "new")} for edit in first["edits"]]


def test_host_memory_is_raised_by_requeue(cluster, work, script):
    if not cluster.memory_limits:
        pytest.skip("no memory cgroup here")
    job = cluster.sbatch(work, "--oom-retry", "--mem=150", script(hog(200)))
    after = dependent(cluster, work, job)
    killed = cluster.sbatch(work, "--mem=50", f"--dependency=afterok:{job.id}",
                            "--kill-on-invalid-dep=yes", "--wrap", "true")
    record = job.wait()
    assert record["JobState"] == "COMPLETED", job.output()
    assert record["Restarts"] == "1"
    assert int(record["MinMemoryNode"].rstrip("M")) > 200
    assert after.wait()["JobState"] == "COMPLETED"
    assert killed.wait()["JobState"] == "COMPLETED"
    story = history(cluster, job)
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", "requeue"]
    assert story["attempts"][0]["incident"]["domain"] == "host"


@pytest.mark.parametrize("options,line,mode,wanted", [
    (["--mem-per-cpu=50", "-n3"], "", "requeue", ("MinMemoryCPU", "100M")),
    (["-n3"], "#SBATCH --mem-per-cpu=50", "resubmit", ("MinMemoryCPU", "100M")),
    (["--gpus=2", "--mem-per-gpu=75"], "", "resubmit", ("MemPerTres", "gres:gpu:150")),
    (["-n1"], "", "requeue", ("MinMemoryCPU", "200M")),  # the site's default
], ids=["by CPU", "by CPU in the script", "by GPU", "default"])
def test_memory_is_raised_as_it_was_asked_for(cluster, work, script, options, line, mode, wanted):
    if not cluster.memory_limits:
        pytest.skip("no memory cgroup here")
    size = 110 if wanted[1] == "200M" else 200
    path = script(hog(size).replace("\n", f"\n{line}\n", 1))
    asked = [] if mode == "requeue" or "--gpus=2" in options else ["--oom-mode=resubmit"]
    job = cluster.sbatch(work, "--oom-retry", "--open-mode=append", *asked, *options, path)
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    assert story["lineage"]["state"] == "completed", job.output()
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", mode]
    assert Job(cluster, story["lineage"]["jobs"][-1], "").record()[wanted[0]] == wanted[1]


@pytest.mark.parametrize("mode", ["requeue", "resubmit"])
def test_memory_of_the_component_that_ran_out(cluster, work, script, mode):
    """A heterogeneous job: only the component gets more in which a step was killed."""
    if not cluster.memory_limits:
        pytest.skip("no memory cgroup here")
    path = script("#!/bin/bash\nsrun --het-group=1 -n1 python3 -c "
                  "'x = bytearray(140 << 20); print(\"fits\")' || exit 1\n")
    job = cluster.sbatch(work, "--oom-retry", f"--oom-mode={mode}", "--mem=60", ":", "--mem=110", path)
    story = wait_for(lambda: is_over(cluster, job), "the lineage to end")
    assert story["lineage"]["state"] == "completed", job.output()
    assert [attempt["mode"] for attempt in story["attempts"]] == ["first", mode]
    last = story["lineage"]["jobs"][-1]
    memory = [Job(cluster, last + offset, "").record()["MinMemoryNode"] for offset in ("+0", "+1")]
    assert memory == ["60M", "220M"]


def test_real_memory_shrinks_with_a_flag(cluster, work, script):
    """The partition's limit leaves no room for more memory, so the buffers are made smaller."""
    if not cluster.memory_limits:
        pytest.skip("no memory cgroup here")
    (work / "relax/entrypoints").mkdir(parents=True)
    (work / "relax/entrypoints/train.py").write_text(training.REAL_TRAINER)
    path = script("#!/bin/bash\nARGS=(\n  --streaming-buffer-size 10000\n)\n"
                  "python3 relax/entrypoints/train.py \"${ARGS[@]}\"\n")
    job = cluster.sbatch(work, "-p", "small", "--oom-retry", "--mem=200", "--open-mode=append", path)
    record = job.wait()
    assert record["JobState"] == "COMPLETED", job.output()
    assert record["MinMemoryNode"] == "200M"
    assert "trained on 2500 samples" in job.output()


# --- what is not retried -------------------------------------------------------------------------

TRACEBACK = "python3 -c 'raise KeyError(\"response_length\")'"
ENDINGS = {
    "exit 1 with a traceback": TRACEBACK,
    "exit 3": "exit 3",
    "exit 0": "exit 0",
    "exit 137 from its own kill -9": "bash -c 'kill -9 $$'",
    "itself killed": "kill -9 $$",
    "itself terminated": "kill -TERM $$",
    "segmentation fault": "bash -c 'kill -SEGV $$'; exit $?",
    "abort": "kill -ABRT $$",
    "command not found": "no-such-program",
    "background child left": "sleep 100 >/dev/null 2>&1 & exit 5",
    "reads standard input": "cat; exit 6",
    "exec": "exec python3 -c 'import sys; sys.exit(7)'",
    "speaks of memory only": "echo 'CUDA out of memory: lowering the batch size'; exit 0",
}


def test_other_ends_are_what_they_were(cluster, work, script):
    """The same script with and without the plugin: state, exit code, output, one start."""
    jobs = {}
    for name, ending in ENDINGS.items():
        path = script(f"#!/bin/bash\necho \"start $0 $*\" | sed 's/job[0-9]*/job/; s/gpu[0-9]*/n/'\n"
                      f"{ending}\n", name.replace(" ", "-") + ".sh")
        jobs[name] = [cluster.sbatch(work, "--mem=60", *options, path, "x", "y z")
                      for options in (["--oom-retry=off"], ["--oom-retry"])]
    for name, (plain, opted) in jobs.items():
        expected, got = plain.wait(), opted.wait()
        for key in "JobState", "ExitCode", "Reason", "Restarts":
            assert got[key] == expected[key], (name, key, opted.output())
        # Bash names the spooled script and the pid when it tells of a killed child.
        clean = [re.sub(r"\S+/slurm_script: line (\d+):( +\d+)?", r"line \1:", job.script_output())
                 for job in (plain, opted)]
        assert clean[0] == clean[1], name


def test_cancelled_is_not_retried(cluster, work, script):
    jobs = [cluster.sbatch(work, "--mem=60", option, script("#!/bin/bash\nsleep 100\n"))
            for option in ("--oom-retry=off", "--oom-retry")]
    for job in jobs:
        job.wait("RUNNING")
    for job in jobs:
        cluster.run("scancel", job.id)
    plain, opted = (job.wait() for job in jobs)
    assert plain["JobState"] == opted["JobState"] == "CANCELLED"
    # Slurm signals the processes one by one: whether bash dies of its own TERM or ends because its
    # child died first is open, with and without the plugin.
    assert {plain["ExitCode"], opted["ExitCode"]} <= {"0:15", "143:0"}


# slurmstepd passes no signal on before it has noted that all tasks run, which is after they do.
SETTLED = "sleep 2\n"


def test_job_that_traps_the_cancellation(cluster, work, script):
    """It has KillWait to save its work, as without oomrun; then oomrun does not hold it up."""
    path = script("#!/bin/bash\ntrap 'echo saving; sleep 1; echo saved; exit 9' TERM\n"
                  f"{SETTLED}echo ready\nsleep 100 & wait\n")
    jobs = [cluster.sbatch(work, "--mem=60", option, path)
            for option in ("--oom-retry=off", "--oom-retry")]
    for job in jobs:
        job.wait("RUNNING")
        wait_output(job, "ready")
        cluster.run("scancel", job.id)
    for job in jobs:
        assert job.wait()["JobState"] == "CANCELLED"
        wait_output(job, "saved")
        # Slurm may show the end before the exit code.
        wait_for(lambda: job.record()["ExitCode"] == "9:0", "the trap's exit code")


def wait_output(job, text):
    try:
        wait_for(lambda: text in job.output(), f"{text!r} in the output of job {job.id}", 20)
    except AssertionError as late:
        raise AssertionError(f"{late}; it is\n{job.record()}\n{job.output()}") from None


@pytest.mark.parametrize("how", [["--batch", "--signal=USR1"], ["--full", "--signal=USR1"],
                                 ["--batch", "--signal=TERM"]])
def test_signals_reach_the_script_once(cluster, work, script, how):
    path = script(f"#!/bin/bash\ntrap 'echo caught' USR1 TERM\n{SETTLED}echo ready\n"
                  "for i in $(seq 40); do sleep 0.05; done\n")
    outputs = []
    for option in "--oom-retry=off", "--oom-retry":
        job = cluster.sbatch(work, "--mem=60", option, path)
        job.wait("RUNNING")
        wait_output(job, "ready")
        cluster.run("scancel", *how, job.id)
        assert job.wait()["JobState"] == "COMPLETED"
        outputs.append(job.script_output().replace("User defined signal 1", ""))
    assert outputs[0].count("caught") == outputs[1].count("caught") == 1


@pytest.fixture(scope="module", autouse=True)
def timed_out(cluster):
    """Slurm's shortest time limit is a minute, so these two jobs run beside the other tests."""
    work = Path(tempfile.mkdtemp(prefix="w", dir=cluster.dir.parent))
    os.chown(work, OWNER.pw_uid, OWNER.pw_gid)
    return [cluster.sbatch(work, "--mem=60", "--time=1", option, "--wrap", "sleep 1000")
            for option in ("--oom-retry=off", "--oom-retry")]


# --- ranks that wait for one that is gone --------------------------------------------------------


def test_hanging_peers_are_ended(cluster, work, script):
    """One of two ranks runs out and the other waits for it for ever; also as a job step on another
    node. Within the grace period (shortened here) the attempt is over and the next one begins."""
    (work / "bin").mkdir()
    script("""#!/bin/bash
case "$*" in *recompute-granularity*) echo trained; exit 0 ;; esac
if [ "${SLURM_PROCID:-0}" = 0 ]; then
    cat <<'END'
  File "/root/Relax/relax/backends/megatron/actor.py", line 527, in train_actor
    train(
  File "/root/Megatron-LM/megatron/core/pipeline_parallel/schedules.py", line 423, in forward_step
    output_tensor, loss_func = forward_step_func(data_iterator, model)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.10 GiB memory in use. Of the allocated memory 76.50 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.
END
    exit 1
fi
echo "$$ on $SLURMD_NODENAME" > """ + f"{work}" + """/peer
trap '' TERM
while :; do sleep 1; done
""", "bin/python3")
    path = script(f"""#!/bin/bash
#SBATCH -N 2 -n 2 --mem=100 --gres=gpu:2 -t 30 --oom-retry=relax
export PATH={work}/bin:$PATH
srun -N 2 -n 2 python3 -m relax.entrypoints.train --use-dynamic-batch-size --max-tokens-per-gpu 8192
""")
    began = time.monotonic()
    job = cluster.sbatch(work, path, env={"OOMRETRY_GRACE_S": "4"})
    assert job.wait()["JobState"] == "COMPLETED", job.output()
    assert time.monotonic() - began < 45
    assert "trained" in job.output()
    # Two nodes with two GPUs each, for somewhat less than half an hour.
    saved = re.search(r"up to the time limit that saves ([0-9.]+) GPU-hours", job.output())
    assert saved and 1.5 < float(saved[1]) <= 2, job.output()
    assert f"saved {saved[1]} GPU-hours" in cluster.oomctl("explain", job.id).stdout
    peer = (work / "peer").read_text().split()[0]
    assert not Path(f"/proc/{peer}").exists()


# --- an agent that does not answer ---------------------------------------------------------------


@pytest.mark.parametrize("how", ["stopped", "hung", "garbage"])
def test_agent_that_does_not_answer(cluster, work, script, paused, how):
    """Opted-in jobs start and end normally; a job that runs out of memory ends as without us."""
    training.stage(work)
    head = cluster.dir / "oomretry" / "head.sock"
    moved = head.with_name("moved.sock")
    if how == "hung":
        paused("oomagent")
    else:
        head.rename(moved)
    server = None
    if how == "garbage":
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(head))
        head.chmod(0o777)
        server.listen()

        def answer():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.sendall(b"\x00\xff garbage\r\n\r\n" * 5000)
                connection.close()
        threading.Thread(target=answer, daemon=True).start()
    try:
        fine = cluster.sbatch(work, "--mem=60", "--oom-retry", script("#!/bin/sh\necho ran\n"))
        fails = cluster.sbatch(work, "--mem=60", "--oom-retry",
                               script("#!/bin/sh\nexit 4\n", "fails.sh"))
        oom = cluster.sbatch(work, "relax.sh", env=training.environment(work, "relax"))
        assert fine.wait()["JobState"] == "COMPLETED"
        assert fine.script_output() == "ran\n"
        assert fails.wait()["ExitCode"] == "4:0"
        record = oom.wait()
        assert (record["JobState"], record["ExitCode"]) == ("FAILED", "1:0")
        assert len(starts(work)) == 1
    finally:
        if server:
            server.close()
            head.unlink()
        if moved.exists():
            moved.rename(head)


def test_time_limit_is_not_retried(timed_out):
    plain, opted = (job.wait(seconds=150) for job in timed_out)
    assert plain["JobState"] == opted["JobState"] == "TIMEOUT"
    # Slurm signals the processes one by one: whether bash dies of its own TERM or ends because its
    # child died first is open, with and without the plugin.
    assert {plain["ExitCode"], opted["ExitCode"]} <= {"0:15", "143:0"}
    assert opted["Restarts"] == "0"
