#!/bin/bash
MBS=${MBS:-4}
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size $MBS --bf16
