#!/bin/bash
ARGS=(--bf16 --micro-batch-size 4 --micro-batch-size 8)
unset 'ARGS[3]' 'ARGS[4]'
python pretrain_gpt.py "${ARGS[@]}"
