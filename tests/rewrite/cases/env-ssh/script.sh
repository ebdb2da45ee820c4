#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
for h in n1 n2; do
  ssh $h "cd $PWD && python pretrain_gpt.py --micro-batch-size 4" &
done
wait
