#!/bin/bash
deepspeed --module openrlhf.cli.train_sft --train.micro_batch_size 4 --data.max_len 2048
deepspeed --module openrlhf.cli.train_dpo --train.micro_batch_size 2 --data.max_len 2048
python -m openrlhf.cli.serve_rm --port 5000 --bf16 &
python -m openrlhf.cli.lora_combiner --output_path o
wait
