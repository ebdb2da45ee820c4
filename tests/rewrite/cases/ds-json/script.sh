#!/bin/bash
#SBATCH --nodes=1
deepspeed --num_gpus 8 train.py \
    --deepspeed ds.json \
    --per_device_train_batch_size 4 --bf16 True > log 2>&1
