#!/bin/bash
#SBATCH --nodes=1
GPUS_PER_NODE=8
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes 1 --master_addr localhost"
GPT_ARGS="
    --num-layers 24 \
    --hidden-size 1024 \
    --micro-batch-size 4 \
    --global-batch-size 8
"
OUTPUT_ARGS="
    --log-interval 100
    --save-interval 10000
"
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $GPT_ARGS \
    $OUTPUT_ARGS \
    --distributed-backend nccl \
    --save /ckpt
