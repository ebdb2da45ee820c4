#!/bin/bash
#SBATCH --nodes=1
docker run --rm --gpus all --shm-size 32g -v $PWD:/w -e NCCL_DEBUG=WARN img:1 \
    deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --train.micro_batch_size 4 --ds.zero_stage 2
