#!/bin/bash
printf '%s\n' 1 2 | xargs -I{} -P1 python pretrain_gpt.py --seed {} --micro-batch-size 4
