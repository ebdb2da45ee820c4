#!/bin/bash
#SBATCH --nodes=1
MBS="${MBS:-4}"
GBS=$(( MBS * 64 ))
echo "mbs ${MBS}, gbs ${GBS}"
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size "${MBS}" --global-batch-size "${GBS}" --save "/ckpt/mbs-${MBS}"
