#!/bin/bash
seq 2 | xargs -n 1 bash -c 'python pretrain_gpt.py --seed "$0" --micro-batch-size 4'
