# SPDX-License-Identifier: Apache-2.0
"""Kinds of jobs and causes of failure for the table of test_restarts.py.

A job's script starts a stand-in for a Relax trainer, which runs out of memory (in words, or for
real) until something has been changed. Each start leaves a line in work/runs."""
import contextlib
import json
import os
import signal
from pathlib import Path

from book import ALIVE, OPEN
from conftest import Job, wait_for

# What a Relax job says when CUDA runs out.
OOM_MESSAGE = """Traceback (most recent call last):
  File "/root/Relax/relax/backends/megatron/actor.py", line 391, in train
    return self.train_actor(rollout_id, rollout_data)
  File "/root/Relax/relax/backends/megatron/actor.py", line 527, in train_actor
    train(
  File "/root/Megatron-LM/megatron/core/pipeline_parallel/schedules.py", line 423, in forward_step
    output_tensor, loss_func = forward_step_func(data_iterator, model)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.10 GiB memory in use. Of the allocated memory 76.50 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.
"""
# Says it unless it was given a smaller setting.
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
OOM_MESSAGEEND
    AFTER
    exit 1
fi
echo "trained with $tokens"
""".replace("OOM_MESSAGE", OOM_MESSAGE)
# Really takes memory; the limit of the job or step decides.
HOST_TRAINER = """#!/bin/bash
exec /usr/bin/python3 -c 'x = bytearray(140 << 20); print("trained")'
"""
# What a cause is made of: the trainer, what starts it, and the job's memory in MiB.
CAUSES = {
    "gpu": (GPU_TRAINER.replace("AFTER", ":"), "", 200),
    "host, batch step": (HOST_TRAINER, "", 110),
    "host, srun step": (HOST_TRAINER, "srun --export=ALL -n 1 ", 110),
    # The trainer is a child of the script, which is a child of oomrun.
    "oomrun killed": (GPU_TRAINER.replace(
        "AFTER", 'sleep 0.5; kill -9 "$(ps -o ppid= -p $PPID)"; sleep 100'), "", 200),
    "slurmstepd killed": (GPU_TRAINER.replace("AFTER", "sleep 100"), "", 200),
    "agent away": (GPU_TRAINER.replace("AFTER", "while [ ! -e WORK/go ]; do sleep 0.2; done"),
                   "", 200),
}
KINDS = ("plain", "array", "het", "afterok", "afterany", "afternotok", "aftercorr", "singleton",
         "kill-on-invalid-dep", "standard input", "wrap", "arguments", "export=NONE", "no-requeue")
MODES = ("auto", "requeue", "resubmit")
# "auto" is "in place" for a cause whose remedy is a flag, and "requeue" for the others; a row of
# its own would be the same row.
SAME = {(cause, "requeue") for cause in CAUSES if cause != "gpu"}
# Beyond the product.
MORE = [("append", "gpu", "requeue"), ("append", "oomrun killed", "auto")]


def cells():
    """(kind, cause, mode) of all rows that there must be."""
    return {(kind, cause, mode) for kind in KINDS for cause in CAUSES for mode in MODES
            if (cause, mode) not in SAME} | set(MORE)


def write_job(work, script, cause):
    """work/job.sh and the trainer that it starts; returns (script, memory in MiB)."""
    trainer, launcher, memory = CAUSES[cause]
    (work / "bin").mkdir()
    script(trainer.replace("WORK", str(work)), "bin/python3")
    path = script(f"""#!/bin/bash
export PATH={work}/bin:$PATH
if [ "$SLURM_ARRAY_TASK_ID" = 0 ]; then exit 0; fi
echo "$SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $*" >> {work}/runs
echo started
{launcher}python3 -m relax.entrypoints.train --use-dynamic-batch-size --max-tokens-per-gpu 8192
""")
    return path, memory


def dependents(cluster, work, job, kind):
    """The job that waits for it, or None."""
    def submit(*options):
        return cluster.sbatch(work, "--mem=50", "-J", "after-" + work.name, "-o", "/dev/null",
                              *options, "--wrap", "true")
    if kind in ("afterok", "afterany", "afternotok"):
        return submit(f"--dependency={kind}:{job.id}")
    if kind == "kill-on-invalid-dep":
        return submit(f"--dependency=afterok:{job.id}", "--kill-on-invalid-dep=yes")
    if kind == "aftercorr":
        return submit("--array=0-1", f"--dependency=aftercorr:{job.id}")
    if kind == "array":
        return submit(f"--dependency=afterok:{job.id}")
    if kind == "singleton":
        return submit("--dependency=singleton", "-J", work.name)
    return None


def submit(cluster, work, script, kind, cause, mode):
    """Submits the job, named like its directory, and what waits for it."""
    path, memory = write_job(work, script, cause)
    options = ["--oom-retry=relax", f"--oom-mode={mode}", f"--mem={memory}", "-J", work.name]
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
    elif kind == "two nodes":
        job = cluster.sbatch(work, *options, "-N2", path)
    elif kind == "append":
        job = cluster.sbatch(work, *options, "--open-mode=append", path)
    else:
        job = cluster.sbatch(work, *options, path)
    return job, dependents(cluster, work, job, kind)


def runs(work):
    """(job, restart, arguments) of each start of the script."""
    path = work / "runs"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(line.split(maxsplit=2) + [""])[:3] for line in lines]


def below(pid):
    """A process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += below(int(child))
    return found


def kill_step(cluster, raw):
    """slurmstepd of the batch step and everything below it, as when a node's memory is cleared:
    nobody reports the end of the step, and Slurm goes on calling the job RUNNING."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            mine = f"SLURM_CONF={cluster.conf}".encode() in (
                (entry / "environ").read_bytes() if words.startswith(b"slurmstepd") else b"")
        except OSError:
            continue
        if mine and words.startswith(f"slurmstepd: [{raw}.batch]".encode()):
            for pid in below(int(entry.name)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
    raise AssertionError(f"no slurmstepd of job {raw}")


def watched(job, kind):
    """The job whose lineage is looked at: of an array, the task that fails."""
    if kind in ("array", "aftercorr"):
        return Job(job.cluster, job.id + "_1", job.path)
    return job


def story_of(cluster, job):
    """The lineage and its attempts, as its owner reads them; None when nothing is known."""
    done = cluster.oomctl("history", "--json", job.id)
    return json.loads(done.stdout) if done.returncode == 0 else None


def is_over(cluster, job):
    """The story when the lineage has ended, with its jobs."""
    story = story_of(cluster, job)
    if not story or story["lineage"]["state"] in OPEN:
        return None
    states = [cluster.run("squeue", "-h", "-t", "all", "-j", number, "-o", "%T").stdout.strip()
              for number in story["lineage"]["jobs"]]
    return None if set(states) & set(ALIVE) else story


def outputs(work):
    """Where the words of the two attempts are when all is over: in `one file`; the first attempt's
    `kept` beside the output; or in `a file each`."""
    texts = {path.name: path.read_text(errors="replace") for path in work.glob("*.out*")}
    texts = {name: (text.count("started\n"), text.count("trained")) for name, text in texts.items()
             if "started\n" in text}
    kept = sorted(found for name, found in texts.items() if ".attempt-" in name)
    own = sorted(found for name, found in texts.items() if ".attempt-" not in name)
    return {((), ((2, 1),)): "one file", (((1, 0),), ((1, 1),)): "kept",
            (((1, 0),), ((2, 1),)): "one file, and kept",
            ((), ((1, 0), (1, 1))): "a file each"}.get((tuple(kept), tuple(own)), str(texts))


def dependent_outcome(book, after, kind):
    """run, wait (for good) or cancelled."""
    def judged():
        found = book.jobs(after.path.parent.name if kind == "singleton" else
                          "after-" + after.path.parent.name) or {}
        found = [found[number] for number in found if number.split("_")[0] == after.id]
        for state, word in (("COMPLETED", "run"), ("CANCELLED", "cancelled")):
            if found and all(one[0] == state for one in found):
                return word
        waits = found and all(reason == "DependencyNeverSatisfied" for _, reason in found)
        return "wait" if waits else None
    return wait_for(judged, f"a verdict over dependent {after.id}", pause_s=0.4)


def outcome(cluster, book, work, job, after, kind):
    """What the table states of a row, when all is over."""
    target = watched(job, kind)
    # A dependent of the same name may wait for good.
    name = work.name

    def over():
        found = [row for row in book.lineages(name) if target.id in book.jobs_of(row["id"])]
        states = book.jobs(name)
        if not found or states is None or found[0]["state"] in OPEN:
            return None
        numbers = book.jobs_of(found[0]["id"])
        # The list may be of a moment before the job was submitted.
        return found[0] if all(n in states and states[n][0] not in ALIVE for n in numbers) else None
    lineage = wait_for(over, f"the lineage of job {target.id} to end", 150, 0.3)
    states = book.jobs(name)
    attempts = [row for row in book.attempts(name) if row["lineage"] == lineage["id"]]
    result = {
        "states": ", then ".join(states.get(number, ("unknown", ""))[0]
                                 for number in book.jobs_of(lineage["id"])),
        "ways": ", ".join(attempt["mode"] for attempt in attempts[1:]),
        "starts": str(len(runs(work))),
        "output": outputs(work),
        "dependents": dependent_outcome(book, after, kind) if after else "",
    }
    if after and result["dependents"] == "wait":
        cluster.run("scancel", after.id)
    if kind == "arguments" and {run[2] for run in runs(work)} != {"one two words"}:
        result["starts"] += ", with other arguments"
    return result
