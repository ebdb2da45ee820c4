#!/bin/bash
batch_args() {
  echo --micro-batch-size 4
  echo --use-flash-attn
}
python pretrain_gpt.py $(batch_args) --bf16
