#!/bin/bash
RAW="
--micro-batch-size 4   # small
--global-batch-size 64
"
ARGS=$(echo "$RAW" | sed 's/#.*//')
python pretrain_gpt.py $ARGS --bf16
