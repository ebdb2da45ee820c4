#!/bin/bash
HEAD=node01
ssh $HEAD "cd /w && ray job submit --runtime-env-json='{\"working_dir\": \"/w\", \"env_vars\": {\"NCCL_BUFFSIZE\": \"4\", \"NCCL_DEBUG\": \"WARN\"}}' -- python3 train.py --colocate --max-tokens-per-gpu 9216"
