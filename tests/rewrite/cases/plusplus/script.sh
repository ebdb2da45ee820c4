#!/bin/bash
MBS=3
((MBS++))
python pretrain_gpt.py --micro-batch-size $MBS --bf16
