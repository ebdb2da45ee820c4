#!/bin/bash
#SBATCH --nodes=1
MBS=${MBS:-4}
TP=${TP:-2}
torchrun --nproc-per-node 8 pretrain_gpt.py \
    --tensor-model-parallel-size ${TP} \
    --micro-batch-size ${MBS} \
    --global-batch-size 256
