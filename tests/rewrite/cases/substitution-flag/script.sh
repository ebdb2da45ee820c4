#!/bin/bash
#SBATCH --nodes=1
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 4 $( [ "${FP8:-0}" = 1 ] && echo --fp8-format hybrid ) --bf16
