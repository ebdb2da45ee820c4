#!/bin/bash
#SBATCH --job-name=areal-gsm8k
#SBATCH --nodes=1 --gres=gpu:8 --mem=500
#SBATCH --time=30
#SBATCH --oom-retry=areal
# AReaL: GRPO on GSM8K, four GPUs train (FSDP) and four serve rollouts (SGLang).
set -euo pipefail

export EXPERIMENT=gsm8k-grpo
python3 examples/math/gsm8k_rl.py --config gsm8k_grpo.yaml \
    scheduler.type=local \
    experiment_name=$EXPERIMENT trial_name=trial-$SLURM_JOB_ID \
    actor.mb_spec.max_tokens_per_mb=16384 \
    gconfig.max_new_tokens=2048
