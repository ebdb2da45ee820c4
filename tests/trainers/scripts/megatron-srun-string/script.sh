#!/bin/bash
#SBATCH -p batch -N 2 --ntasks-per-node=8
MBZ=${MBZ:-@mbs|2@}
SEQ=@seq|8192@
OPTIONS=" \
    --use-mcore-models --transformer-impl transformer_engine \
    --tensor-model-parallel-size @tp|4@ --pipeline-model-parallel-size @pp|1@ --sequence-parallel \
    --use-distributed-optimizer \
    --num-layers @layers@ --hidden-size @hidden@ --num-attention-heads @heads@ \
    --seq-length ${SEQ} --max-position-embeddings ${SEQ} \
    --micro-batch-size ${MBZ} \
    --global-batch-size @gbs|128@ \
    @recompute|@ \
    --train-samples 1000000 --lr 1e-4 --bf16 --mock-data --tokenizer-type NullTokenizer --vocab-size 32000 \
    @extra|@"
run_cmd="python -u pretrain_gpt.py ${OPTIONS}"
srun -l --container-image registry.example/mcore:25.04 sh -c "${run_cmd}"
