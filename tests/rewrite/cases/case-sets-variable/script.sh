#!/bin/bash
#SBATCH --nodes=1
MODEL=${MODEL:-7b}
case "$MODEL" in
    7b)  MBS=4; LAYERS=32 ;;
    70b) MBS=2; LAYERS=80 ;;
    *)   echo "unknown $MODEL"; exit 1 ;;
esac
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers $LAYERS --micro-batch-size $MBS
