#!/bin/bash
#SBATCH --nodes=1
set -e
ARGS=(
    --model_name_or_path /models/base
    --dataset_name org/dataset
    --per_device_train_batch_size @micro|8@
    --gradient_accumulation_steps @gas|2@
    --max_length @len|4096@
    --bf16 true
    --dataloader_num_workers @workers|0@
    @gc|@
    --output_dir out
)
accelerate launch --config_file zero.yaml --num_processes 8 sft.py "${ARGS[@]}" @extra|@
