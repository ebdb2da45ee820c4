#!/bin/bash
#SBATCH --nodes=1
CMD=$(cat <<EOF
torchrun --nproc-per-node 8 pretrain_gpt.py
    --micro-batch-size 4
    --bf16
EOF
)
srun bash -c "$(echo $CMD)"
