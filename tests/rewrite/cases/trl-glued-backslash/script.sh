#!/bin/bash
per_device_train_batch_size=8
max_len=4096
out=run_${max_len}
if [[ $TODO == test ]]
then
    echo "Testing..."
    python run_sft.py --model_name_or_path /m/x --per_device_train_batch_size 1 --do_eval True --max_length 4096
else
    python run_sft.py \
        --model_name_or_path /m/x \
        --per_device_train_batch_size $per_device_train_batch_size \
        --max_length $max_len \
        --output_dir $out \
        --fp16 False\
        --bf16 True\
        --report_to wandb
fi
