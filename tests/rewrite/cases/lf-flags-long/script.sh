#!/bin/bash
NPROC=8
deepspeed --num_gpus $NPROC --master_port=9901 --hostfile=conf/hostfile src/train.py \
    --deepspeed examples/deepspeed/ds_z3_config.json \
    --stage sft \
    --do_train \
    --disable_gradient_checkpointing True \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 4 \
    --lr_scheduler_type cosine \
    --bf16 True
