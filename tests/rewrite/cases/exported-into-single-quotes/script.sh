#!/bin/bash
#SBATCH --nodes=2
export MBS=4
export MASTER_ADDR=node01
srun --label bash -c 'torchrun --nnodes 2 --node-rank $SLURM_PROCID --nproc-per-node 8 --master-addr $MASTER_ADDR pretrain_gpt.py --micro-batch-size $MBS --bf16'
