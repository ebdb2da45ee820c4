#!/bin/bash
MBS=4
cat batch.conf | while read -r line; do
  MBS=$line
done
python pretrain_gpt.py --micro-batch-size $MBS
