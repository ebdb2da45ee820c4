#!/bin/bash
ARGS=(--micro-batch-size 4 --data-path "/d/a b" --bf16)
printf -v JOINED '%q ' "${ARGS[@]}"
bash -c "python pretrain_gpt.py $JOINED"
