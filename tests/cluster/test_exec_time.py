# SPDX-License-Identifier: Apache-2.0
"""Settings that only the moment of execution can change: the batch script calls a file, which
activates an environment, which starts a step, which starts the program. The file names its run
after itself, so that a changed copy would do something else."""
import os

# Runs out of GPU memory by its own word until the tokens fit; says what it was started with.
TRAINER = '''#!/usr/bin/python3
import os, sys
args = sys.argv[1:]
tokens = [int(b) for a, b in zip(args, args[1:]) if a == "--max-tokens-per-gpu"][-1]
print("tokens", tokens, "preload", os.environ.get("LD_PRELOAD", "none"), flush=True)
if tokens > 9000:
    print('  File "/x/relax/backends/megatron/actor.py", line 424, in train_actor', flush=True)
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total "
          "capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has "
          "78.12 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 100.00 MiB "
          "is reserved by PyTorch but unallocated.", flush=True)
    sys.exit(1)
print("trained")
'''

# What conda's activation does to the environment, and what sites add to it.
ACTIVATE = '''export CONDA_PREFIX=$PWD/env PATH="$PWD/env/bin:$PATH"
unset LD_PRELOAD PYTHONPATH
'''

RUN = '''#!/bin/bash
set -e
export RUN_NAME=$(basename "$0" .sh)
source ./activate
srun --ntasks=1 bash -c 'exec python3 relax/entrypoints/train.py --resource "{}" --colocate \\
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \\
    --use-dynamic-batch-size --rollout-max-context-len 4096 --max-tokens-per-gpu 12288'
'''


def test_a_called_file_behind_activation_and_srun(cluster, work, script):
    for name in "relax/entrypoints", "train", "env/bin":
        (work / name).mkdir(parents=True)
    (work / "relax/entrypoints/train.py").write_text(TRAINER)
    (work / "activate").write_text(ACTIVATE)
    (work / "train/run.sh").write_text(RUN)
    before = (work / "train/run.sh").read_bytes()
    job = cluster.sbatch(work, "--oom-retry", "--mem=100", "--open-mode=append",
                         script("#!/bin/bash\nbash train/run.sh\n"))
    record = job.wait()
    output = job.output()
    assert record["JobState"] == "COMPLETED", output
    started = [line.split() for line in output.splitlines() if line.startswith("tokens ")]
    # The first attempt has no preload at all; the retry's value arrived through it.
    assert started[0] == ["tokens", "12288", "preload", "none"]
    assert int(started[-1][1]) <= 9000 and started[-1][3].endswith("liboomargv.so")
    assert "trained" in output
    assert (work / "train/run.sh").read_bytes() == before
    assert not [name for name in os.listdir(work) if name.startswith(".oomrun")]
