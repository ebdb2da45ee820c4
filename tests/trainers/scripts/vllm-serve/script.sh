#!/bin/bash
#SBATCH --gres=gpu:@gpus|1@
vllm serve /models/base \
    --tensor-parallel-size @tp|1@ \
    --max-model-len @len|32768@ \
    --gpu-memory-utilization @util|0.9@ \
    --max-num-seqs @seqs|256@ @extra|@
