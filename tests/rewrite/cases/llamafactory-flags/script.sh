#!/bin/bash
#SBATCH --nodes=1
llamafactory-cli train \
    --stage sft \
    --model_name_or_path /models/base \
    --per_device_train_batch_size 4 \
    --fp16
