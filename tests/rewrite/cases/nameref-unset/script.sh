#!/bin/bash
ARGS=(--num-layers 4)
add() { local -n out=$1; shift; out+=("$@"); }
add ARGS --micro-batch-size 4 --use-flash-attn
add ARGS --seq-length 4096
python pretrain_gpt.py "${ARGS[@]}"
