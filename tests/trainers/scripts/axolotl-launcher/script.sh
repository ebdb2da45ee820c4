#!/bin/bash
#SBATCH --job-name=axo
export MASTER_ADDR=localhost
srun axolotl train train.yaml @extra|@ --launcher torchrun -- --nproc_per_node=8 --nnodes=1 \
    --rdzv_id=${SLURM_JOB_ID:-1} --rdzv_backend=c10d --rdzv_endpoint=${MASTER_ADDR}:29400
