#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --nodes=1
# Runs the model on 8 GPUs of one node.
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
MASTER_ADDR=localhost
MASTER_PORT=6000

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes 1
    --master_addr $MASTER_ADDR
    --master_port $MASTER_PORT
)

GPT_MODEL_ARGS=(
    --num-layers @layers@
    --hidden-size @hidden@
    --num-attention-heads @heads@
    --seq-length @seq|4096@
    --max-position-embeddings @seq|4096@
    --attention-backend auto # flash, fused, unfused
)

TRAINING_ARGS=(
    --micro-batch-size @mbs|4@
    --global-batch-size @gbs|256@
    # --rampup-batch-size 16 16 5859375
    --train-iters 500000
    --weight-decay 0.1
    --bf16
    --lr 6.0e-5
    @training|@
)

MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size @tp|2@
	--pipeline-model-parallel-size @pp|1@
	@parallel|--sequence-parallel --use-distributed-optimizer@
)

DATA_ARGS=(
    --mock-data
    --tokenizer-type NullTokenizer
    --vocab-size 151936
    @data|--num-workers 2@
)

EVAL_AND_LOGGING_ARGS=(
    --log-interval 100
    --save-interval 10000
    --eval-interval 1000
    --save checkpoints
    --eval-iters 10
)

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    ${TRAINING_ARGS[@]} \
    ${MODEL_PARALLEL_ARGS[@]} \
    ${DATA_ARGS[@]} \
    ${EVAL_AND_LOGGING_ARGS[@]} @extra|@
