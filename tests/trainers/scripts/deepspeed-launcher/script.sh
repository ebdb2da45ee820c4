#!/bin/bash
#SBATCH --gres=gpu:8
export WANDB_MODE=offline
deepspeed --num_gpus 8 train_ds.py \
    --model_name_or_path /models/base \
    --deepspeed ds.json \
    --per_device_train_batch_size @micro|8@ \
    --gradient_accumulation_steps @gas|4@ \
    --max_seq_length @len|4096@ \
    --bf16 True \
    --dataloader_num_workers @workers|4@ \
    --output_dir out @gc|@ @extra|@
