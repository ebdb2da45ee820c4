#!/bin/bash
#SBATCH --nodes=1
BATCH=8
[[ "${LONG:-0}" == 1 ]] && BATCH=2
accelerate launch --num_processes 8 train_sft.py --per_device_train_batch_size $BATCH --max_length 4096
