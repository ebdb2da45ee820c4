# SPDX-License-Identifier: Apache-2.0
"""Kinds of jobs and causes of failure for the table of test_restarts.py.

A job's script starts a stand-in for a Relax trainer, which runs out of memory (in words, or for
real) until something has been changed. Each start leaves a line in work/runs."""
import json

from conftest import Job, wait_for

# Says what a Relax job says when CUDA runs out, unless it was given a smaller setting.
GPU_TRAINER = r"""#!/bin/bash
tokens=0
while [ $# -gt 0 ]; do
    case "$1" in
    --max-tokens-per-gpu) tokens=$2 ;;
    --recompute-granularity) tokens=1 ;;
    esac
    shift
done
if [ "$tokens" -ge 8192 ]; then
    cat <<'END'
Traceback (most recent call last):
  File "/root/Relax/relax/backends/megatron/actor.py", line 391, in train
    return self.train_actor(rollout_id, rollout_data)
  File "/root/Relax/relax/backends/megatron/actor.py", line 527, in train_actor
    train(
  File "/root/Megatron-LM/megatron/core/pipeline_parallel/schedules.py", line 423, in forward_step
    output_tensor, loss_func = forward_step_func(data_iterator, model)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.10 GiB memory in use. Of the allocated memory 76.50 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.
END
    AFTER
    exit 1
fi
echo "trained with $tokens"
"""
# Really takes memory; the limit of the job or step decides.
HOST_TRAINER = """#!/bin/bash
exec /usr/bin/python3 -c 'x = bytearray(140 << 20)'
"""
CAUSES = {
    "gpu": (GPU_TRAINER.replace("AFTER", ":"), "", 200),
    "slow gpu": (GPU_TRAINER.replace("AFTER", "sleep 3"), "", 200),
    "host, batch step": (HOST_TRAINER, "", 110),
    "host, srun step": (HOST_TRAINER, "srun --export=ALL -n 1 ", 110),
    # The trainer is a child of the script, which is a child of oomrun.
    "oomrun killed": (GPU_TRAINER.replace(
        "AFTER", 'sleep 0.5; kill -9 "$(ps -o ppid= -p $PPID)"; sleep 100'), "", 200),
}


def write_job(work, script, cause):
    """work/job.sh and the trainer that it starts; returns (script, memory in MiB)."""
    trainer, launcher, memory = CAUSES[cause]
    (work / "bin").mkdir()
    script(trainer, "bin/python3")
    path = script(f"""#!/bin/bash
export PATH={work}/bin:$PATH
echo "$SLURM_JOB_ID ${{SLURM_ARRAY_TASK_ID:--}} ${{SLURM_RESTART_COUNT:-0}} $*" >> {work}/runs
if [ "$SLURM_ARRAY_TASK_ID" = 0 ]; then exit 0; fi
{launcher}python3 -m relax.entrypoints.train --use-dynamic-batch-size --max-tokens-per-gpu 8192
""")
    return path, memory


def dependents(cluster, work, job, kind):
    """{name: job} of jobs that wait for it."""
    def submit(*options):
        return cluster.sbatch(work, "--mem=50", *options, "--wrap", f"echo dependent >> {work}/runs")
    if kind in ("afterok", "afterany", "afternotok"):
        return submit(f"--dependency={kind}:{job.id}")
    if kind == "kill-on-invalid-dep":
        return submit(f"--dependency=afterok:{job.id}", "--kill-on-invalid-dep=yes")
    if kind == "aftercorr":
        return submit("--array=0-1", f"--dependency=aftercorr:{job.id}")
    if kind == "array":
        return submit(f"--dependency=afterok:{job.id}")
    if kind == "singleton":
        return submit("--dependency=singleton", "-J", "single")
    return None


def submit(cluster, work, script, kind, cause, mode):
    """Submits the job and what waits for it."""
    path, memory = write_job(work, script, cause)
    options = ["--oom-retry=relax", f"--oom-mode={mode}", f"--mem={memory}", "--open-mode=append"]
    if kind in ("array", "aftercorr"):
        job = cluster.sbatch(work, *options, "--array=0-1", path)
    elif kind == "het":
        job = cluster.sbatch(work, *options, ":", "--mem=60", path)
    elif kind == "standard input":
        job = cluster.sbatch(work, *options, text_in=path.read_text())
    elif kind == "wrap":
        job = cluster.sbatch(work, *options, "--wrap", path.read_text().split("\n", 1)[1])
    elif kind == "arguments":
        job = cluster.sbatch(work, *options, path, "one", "two words")
    elif kind == "export=NONE":
        job = cluster.sbatch(work, *options, "--export=NONE", path)
    elif kind == "no-requeue":
        job = cluster.sbatch(work, *options, "--no-requeue", path)
    elif kind == "singleton":
        job = cluster.sbatch(work, *options, "-J", "single", path)
    else:
        job = cluster.sbatch(work, *options, path)
    return job, dependents(cluster, work, job, kind)


def runs(work):
    """(job, array task, restart, arguments) of each start of the script."""
    path = work / "runs"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(line.split(maxsplit=3) + [""])[:4] for line in lines if line != "dependent"]


def watched(job, kind):
    """The job whose lineage is looked at: of an array, the task that fails."""
    if kind in ("array", "aftercorr"):
        return Job(job.cluster, job.id + "_1", job.path)
    return job


def story_of(cluster, job):
    done = cluster.oomctl("history", "--json", job.id)
    return json.loads(done.stdout) if done.returncode == 0 else None


def is_over(cluster, job):
    """The lineage when it has ended, with its jobs."""
    story = story_of(cluster, job)
    if not story or story["lineage"]["state"] in ("running", "waiting"):
        return None
    for number in story["lineage"]["jobs"]:
        if Job(cluster, number, "").state in ("PENDING", "RUNNING", "COMPLETING"):
            return None
    return story


def dependent_outcome(cluster, after):
    """run, wait (for good) or cancelled."""
    def judged():
        lines = cluster.run("squeue", "-h", "-t", "all", "-r", "-j", after.id, "-o",
                            "%T %r").stdout.splitlines()
        if all(line.startswith("COMPLETED") for line in lines):
            return "run"
        if all(line.startswith("CANCELLED") for line in lines):
            return "cancelled"
        return "wait" if all("DependencyNeverSatisfied" in line for line in lines) else None
    return wait_for(judged, f"a verdict over dependent {after.id}", pause_s=0.4)


def play(cluster, work, script, kind, cause, mode):
    """Runs one row of the table; returns its outcome as the table states it."""
    job, after = submit(cluster, work, script, kind, cause, mode)
    target = watched(job, kind)
    story = wait_for(lambda: is_over(cluster, target), f"the lineage of job {target.id} to end",
                     pause_s=0.4)
    jobs = story["lineage"]["jobs"]
    task = "1" if "_" in target.id else "-"
    outcome = {
        "states": ", then ".join(Job(cluster, number, "").state for number in jobs),
        "ways": ", ".join(attempt["mode"] for attempt in story["attempts"][1:]),
        "starts": str(sum(run[1] == task for run in runs(work))),
        "dependents": dependent_outcome(cluster, after) if after else "",
    }
    if after and outcome["dependents"] == "wait":
        cluster.run("scancel", after.id)
    return outcome
