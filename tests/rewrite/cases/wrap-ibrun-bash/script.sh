#!/bin/bash
ibrun bash -c 'python pretrain_gpt.py --micro-batch-size 4 --bf16'
