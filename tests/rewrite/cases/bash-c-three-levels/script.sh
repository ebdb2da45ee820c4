#!/bin/bash
srun bash -c 'bash -c '"'"'bash -c "torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 4 --train-data-path \"/d/a b\""'"'"''
