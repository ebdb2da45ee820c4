#!/bin/bash
set -e
@export|export NCCL_DEBUG=WARN@
torchrun --standalone --nproc_per_node=8 train.py --batch-size @batch|32@ --seq-len @len|2048@ \
    --num-workers @workers|4@ @extra|@
