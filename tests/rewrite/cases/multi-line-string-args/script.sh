#!/bin/bash
ARGS="
    --micro-batch-size 4
    --global-batch-size 64
    --use-flash-attn
"
torchrun pretrain_gpt.py $ARGS "$@"
