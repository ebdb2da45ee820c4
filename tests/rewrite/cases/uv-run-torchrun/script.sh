#!/bin/bash
uv run --frozen --extra gpu --with "trl>=0.20" torchrun --standalone --nproc-per-node=8 train_sft_x.py --model_name_or_path m --per_device_train_batch_size 4 --report_to none
