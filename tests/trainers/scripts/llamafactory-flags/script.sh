#!/bin/bash
export FORCE_TORCHRUN=1
llamafactory-cli train \
    --stage sft --do_train True \
    --model_name_or_path /models/base \
    --finetuning_type @type|lora@ \
    --dataset alpaca_en_demo --template qwen \
    --cutoff_len @len|4096@ \
    --per_device_train_batch_size @micro|16@ \
    --gradient_accumulation_steps @gas|1@ \
    --bf16 True \
    @more|@ \
    --output_dir out @extra|@
