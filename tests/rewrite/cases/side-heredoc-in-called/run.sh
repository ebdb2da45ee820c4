#!/bin/bash
read -r -d "" CMD <<EOF
pretrain_gpt.py
  --micro-batch-size 4
  --lr 1e-4
EOF
torchrun --nproc-per-node 8 $CMD
