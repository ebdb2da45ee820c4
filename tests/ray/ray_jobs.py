# SPDX-License-Identifier: Apache-2.0
"""Working directories and command lines of the jobs that these tests submit."""
import json
import shlex
import shutil
from pathlib import Path

from ray_harness import REPO

HERE = Path(__file__).resolve().parent
SCENARIO = json.loads((REPO / "contrib/demo-jobs/relax.json").read_text())
MODULE = ["python3", "-m", "relax.entrypoints.train"]
# As large as the demo's job: it needs recomputation and then fewer tokens.
FLAGS = """--actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate --num-layers 36
--hidden-size 2560 --num-attention-heads 32 --hf-checkpoint /models/Qwen3-4B --prompt-data d.jsonl
--ref-load /models/Qwen3-4B_torch_dist --num-rollout 3 --rollout-batch-size 32
--n-samples-per-prompt 8 --rollout-max-response-len 4096 --global-batch-size 256
--tensor-model-parallel-size 2 --sequence-parallel --use-dynamic-batch-size --optimizer adam
--max-tokens-per-gpu 12288 --rollout-num-gpus-per-engine 2 --sglang-mem-fraction-static 0.7""".split()
# Fits, as far as the GPUs are concerned; the sample buffers are what it is about.
HOST_FLAGS = """--actor-num-nodes 1 --actor-num-gpus-per-node 8 --num-layers 36 --hidden-size 2560
--num-attention-heads 32 --rollout-batch-size 32 --n-samples-per-prompt 8 --global-batch-size 256
--tensor-model-parallel-size 2 --sequence-parallel --use-dynamic-batch-size --optimizer adam
--max-tokens-per-gpu 4608 --rollout-num-gpus-per-engine 2 --num-workers 0 --disable-weights-backuper
--recompute-granularity full --recompute-method uniform --recompute-num-layers 1
--streaming-buffer-size 10000""".split()
SCRIPT = """#!/bin/bash
set -e
export PYTHONUNBUFFERED=1
echo "started as $0, in $(dirname "${BASH_SOURCE[0]}")"
ARGS=(
%s
)
python3 -m relax.entrypoints.train "${ARGS[@]}"
"""


def stage(work, **scenario):
    """A working directory with the trainer; the keywords change what it is told."""
    package = work / "relax" / "entrypoints"
    package.mkdir(parents=True)
    for directory in (work / "relax", package):
        (directory / "__init__.py").write_text("")
    (package / "train.py").write_text("from driver import main\nmain()\n")
    shutil.copy(HERE / "driver.py", work / "driver.py")
    shutil.copytree(REPO / "tests/trainers/fake", work / "fake",
                    ignore=shutil.ignore_patterns("__pycache__"))
    (work / "trainer.json").write_text(json.dumps({**SCENARIO, **scenario}))
    lines = "\n".join("   " + shlex.quote(word) for word in FLAGS)
    (work / "run.sh").write_text(SCRIPT % lines)
    return work


def environment(record=None):
    more = {"FAKE_TRAINER_RECORD": str(record)} if record else {}
    return {"FAKE_TRAINER": "trainer.json", **more}


def starts(record):
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


def rungs(story):
    return [attempt["decision"]["rung"] for attempt in story["attempts"] if attempt.get("decision")]


def outcomes(story):
    return [attempt["outcome"] for attempt in story["attempts"]]


def flag(job, name):
    """The effective value of a flag of an entrypoint: the last one wins."""
    words = shlex.split(job["entrypoint"])
    values = [b for a, b in zip(words, words[1:]) if a == name]
    return values[-1] if values else None
