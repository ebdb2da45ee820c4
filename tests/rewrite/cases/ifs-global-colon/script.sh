#!/bin/bash
CONFIG="4:256:4096"
OLDIFS=$IFS
IFS=':'
set -- $CONFIG
IFS=$OLDIFS
python pretrain_gpt.py --micro-batch-size $1 --global-batch-size $2 --seq-length $3
