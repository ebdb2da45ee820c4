#!/bin/bash
MODE=fg
while getopts "bh" opt; do
    case "$opt" in
        b) MODE=bg ;;
        h) echo "usage: $0 [-b]"; exit 0 ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
LBS=4
ARGS=( --training.local_batch_size $LBS --training.seq_len=8192 )
case "$MODE" in
    bg) nohup torchrun --nproc_per_node 8 -m torchtitan.train "${ARGS[@]}" "$@" > log 2>&1 & wait ;;
    *)  torchrun --nproc_per_node 8 -m torchtitan.train "${ARGS[@]}" "$@" ;;
esac
