#!/bin/bash
#SBATCH --nodes=1 --exclusive
export NCCL_DEBUG=WARN
cd . && uv run ./examples/run_grpo.py --config ./grpo_math_8B.yaml cluster.num_nodes=1 @extra|@
