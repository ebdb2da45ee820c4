#!/bin/bash
BATCH=@micro|16@
ACC=@gas|2@
LEN=@len|2048@
OPTS="--deepspeed ds.json --max_seq_length $LEN --bf16 True"
deepspeed train_ds.py --model_name_or_path /models/base --per_device_train_batch_size $BATCH \
  --gradient_accumulation_steps $ACC $OPTS --output_dir out @gc|@ @extra|@ > train.log 2>&1 || { rc=$?; cat train.log; exit $rc; }
cat train.log
