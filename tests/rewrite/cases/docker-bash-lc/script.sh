#!/bin/bash
docker run --rm --gpus all --ipc=host --ulimit memlock=-1 -v "$PWD":/ws -w /ws -e NCCL_DEBUG=INFO \
    --name "train_$USER" nvcr.io/nvidia/pytorch:24.07-py3 bash -lc "
        set -e
        pip install -q -r requirements.txt
        export WANDB_NAME='run a'
        torchrun --nproc_per_node 8 pretrain_gpt.py \
            --micro-batch-size 4 --global-batch-size 64 \
            --data-path '0.5 /d/a 0.5 /d/b' \
            --no-gradient-accumulation-fusion \
            --tensor-model-parallel-size 2
    "
