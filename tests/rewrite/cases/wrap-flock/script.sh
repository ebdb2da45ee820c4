#!/bin/bash
flock gpu.lock python pretrain_gpt.py --micro-batch-size 4 --bf16
