#!/bin/bash
SIZE=${SIZE:-7b}
case $SIZE in
    7b)  L=32 H=4096 MBS=4 ;;
    13b) L=40 H=5120 MBS=2 ;;
    70b) L=80 H=8192 MBS=2; EXTRA="--recompute-granularity selective" ;;
    *) echo "unknown $SIZE" >&2; exit 1 ;;
esac
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $L --hidden-size $H --micro-batch-size $MBS ${EXTRA:-} --lr 3e-4
