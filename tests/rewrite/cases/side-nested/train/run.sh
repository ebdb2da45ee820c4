#!/bin/bash
source ./train/env.sh
OPTS="--micro-batch-size $MBS --out $MBS"
python3 pretrain_gpt.py $OPTS --lr $LR
