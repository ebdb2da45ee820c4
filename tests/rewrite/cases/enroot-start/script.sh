#!/bin/bash
enroot create --name pt pt.sqsh
enroot start --rw --mount /data:/data --env NCCL_DEBUG=WARN pt \
    bash -c 'cd /ws && torchrun --nproc_per_node=8 pretrain_gpt.py --micro-batch-size 8 --bf16'
