#!/bin/bash
#SBATCH --nodes=1
MBS=4
srun bash <<EOF
set -e
echo "--micro-batch-size 4 for \$SLURM_JOB_ID"
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size ${MBS} --save "/ckpt/\$SLURM_JOB_ID"
EOF
