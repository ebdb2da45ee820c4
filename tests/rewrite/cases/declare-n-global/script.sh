#!/bin/bash
TRAIN_ARGS=(--micro-batch-size 4)
declare -n CUR=TRAIN_ARGS
CUR+=(--recompute-activations --seq-length 2048)
python pretrain_gpt.py "${TRAIN_ARGS[@]}"
