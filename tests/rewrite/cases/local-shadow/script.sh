#!/bin/bash
prepare() {
  local MBS=8
  mkdir -p out
}
MBS=4
prepare
python pretrain_gpt.py --micro-batch-size $MBS --global-batch-size 64
