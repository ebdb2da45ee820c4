#!/bin/bash
#SBATCH -N 1
post_args=(--bf16)
if [ "${FLASH:-1}" = "1" ]; then
  post_args+=(--flash_attn --zero_stage 2)
else
  post_args+=(--zero_stage 1)
fi
LOG=logs.txt
deepspeed --module openrlhf.cli.train_sft \
   --max_len 2048 \
   --micro_train_batch_size 4 \
   --train_batch_size 128 \
   ${post_args[@]} &>> ${LOG}
