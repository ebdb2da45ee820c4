#!/bin/bash
#SBATCH --nodes=1
ARGS=(
    --deepspeed "ds.json"   # stage 2
    --per_device_train_batch_size 4
)
deepspeed train.py "${ARGS[@]}"
