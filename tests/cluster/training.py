# SPDX-License-Identifier: Apache-2.0
"""Training jobs for the cluster tests: the demo's two, played by the fake trainers, and programs
that really allocate memory and are really killed for it."""
import json
import os
import shutil

from conftest import OWNER, REPO

JOBS = REPO / "contrib" / "demo-jobs"
TRAINERS = REPO / "tests" / "trainers"

# Allocates what its flag says, as a real trainer does with its sample buffers.
REAL_TRAINER = """#!/usr/bin/python3
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--streaming-buffer-size", type=int, default=10000)
parser.add_argument("--prefetch-max-cached", type=int, default=256)
parser.add_argument("--mm-processor-pool-size", type=int, default=0)
parser.add_argument("--num-workers", type=int, default=0)
args, _ = parser.parse_known_args()
print("streaming_buffer_size ......... %d" % args.streaming_buffer_size, flush=True)
samples = bytearray(args.streaming_buffer_size * 40 * 1024)
print("trained on %d samples" % args.streaming_buffer_size)
"""


def stage(work):
    """Puts the demo's jobs into the owner's directory, and the stand-ins that they need on PATH:
    not those for Slurm's own programs."""
    shutil.copytree(TRAINERS / "fake", work / "trainers/fake",
                    ignore=shutil.ignore_patterns("__pycache__"))
    (work / "trainers/bin").mkdir()
    for name in "stub", "python3", "ray":
        shutil.copy(TRAINERS / "bin" / name, work / "trainers/bin" / name, follow_symlinks=False)
    for path in JOBS.iterdir():
        shutil.copy(path, work / path.name)
        os.chown(work / path.name, OWNER.pw_uid, OWNER.pw_gid)


def environment(work, name):
    """What makes the fake trainer play that job; it records each start in work/record.jsonl."""
    return {"PATH": f"{work}/trainers/bin:{os.environ['PATH']}", "FAKE_TRAINER": str(work / f"{name}.json"),
            "FAKE_TRAINER_RECORD": str(work / "record.jsonl")}


def starts(work):
    """The trainer's own record of what it was given and how it ended."""
    path = work / "record.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def flag(start, name):
    """The effective value of a flag: the last one wins."""
    values = [b for a, b in zip(start["argv"], start["argv"][1:]) if a == name]
    return values[-1] if values else None


def hog(megabytes, then="echo fits"):
    return (f"#!/bin/bash\npython3 -c 'x = bytearray({megabytes} << 20)' || exit 1\n{then}\n")


def history(cluster, job):
    """{lineage, attempts} as `oomctl history JOBID --json` tells it to the owner."""
    done = cluster.oomctl("history", "--json", job.id)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def rungs(story):
    """The rungs of a lineage in order."""
    return [attempt["decision"]["rung"] for attempt in story["attempts"] if attempt.get("decision")]


def dependent(cluster, work, job, kind="afterok"):
    return cluster.sbatch(work, "--mem=50", "-J", "dependent", f"--dependency={kind}:{job.id}",
                          "--wrap", "echo dependent ran")
