#!/bin/bash
mpirun --allow-run-as-root -np 8 -x NCCL_DEBUG=INFO -x PATH numactl --localalloc python pretrain_gpt.py --micro-batch-size 4
