#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8
set -e
mkdir -p logs
python3 examples/math/gsm8k_rl.py --config conf/grpo.yaml scheduler.type=local trial_name=run-${SLURM_JOB_ID:-0} @extra|@
