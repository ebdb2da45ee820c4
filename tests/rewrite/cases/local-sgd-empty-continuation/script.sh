#!/bin/bash
BATCH_SIZE=16
for SEED in 0 1; do
    out_dir=res/$SEED
    mkdir -p $out_dir
    accelerate launch  run_sft_no_trainer.py \
      --force_bf16 \
      --model_name_or_path bert \
      --per_device_train_batch_size $BATCH_SIZE \
      \
      --task_name x \
      \
      --seed $SEED \
      --output_dir $out_dir  2>&1|tee $out_dir/run.log
done
