#!/bin/bash
#SBATCH --nodes=1
if [ $# -lt 1 ]; then
    echo "usage: $0 CKPT"
    exit 1
fi
CKPT=$1
[ -d conf ] || mkdir -p conf
torchrun --nproc-per-node 8 pretrain_gpt.py --load "$CKPT" --micro-batch-size 4
