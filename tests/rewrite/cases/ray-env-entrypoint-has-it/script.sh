#!/bin/bash
export NCCL_BUFFSIZE=4
ray job submit --runtime-env-json='{"env_vars": {"NCCL_DEBUG": "WARN"}}' \
   -- env NCCL_BUFFSIZE=4 python3 train.py --colocate --max-tokens-per-gpu 9216
