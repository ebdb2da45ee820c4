#!/bin/bash
#SBATCH --nodes=1
ARGS=(--micro-batch-size 4 --wandb-exp-name "two words" --bf16)
printf -v QUOTED '%q ' "${ARGS[@]}"
srun bash -c "torchrun --nproc-per-node 8 pretrain_gpt.py $QUOTED"
