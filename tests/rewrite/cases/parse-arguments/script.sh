#!/bin/bash
#SBATCH --nodes=1
MBS=4
EXTRA=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        --mbs) MBS="$2"; shift 2 ;;
        --help) echo usage; exit 0 ;;
        *) EXTRA+=("$1"); shift ;;
    esac
done
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size "$MBS" "${EXTRA[@]}"
