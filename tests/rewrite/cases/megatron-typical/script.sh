#!/bin/bash
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-1}
TP=1
PP=4
CP=1
MBS=2
GRAD_ACC_STEP=96
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DP=$(($WORLD_SIZE/$TP/$PP/$CP))
GBS=$(($MBS*$GRAD_ACC_STEP*$DP))

DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NNODES
"
OPTIMIZER_ARGS=" \
    --optimizer adam \
    --lr-decay-samples 73_242_187 \
    --clip-grad 1.0 \
    "
GPT_ARGS="
    --tensor-model-parallel-size ${TP} \
    --num-layer-list 0,0,10,20 \
    --micro-batch-size ${MBS} \
    --global-batch-size ${GBS} \
    --rampup-batch-size 32 32 2_000_000 \
    --recompute-granularity selective \
    $OPTIMIZER_ARGS \
"
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $GPT_ARGS \
    --distributed-backend nccl \
    | tee logs_train.log
