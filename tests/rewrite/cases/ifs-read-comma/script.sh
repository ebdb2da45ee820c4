#!/bin/bash
IFS=, read -r MBS GBS SEQ <<< "4,256,4096"
python pretrain_gpt.py --micro-batch-size $MBS --global-batch-size $GBS --seq-length $SEQ
