#!/bin/bash
if [ "$(hostname)" == "node01" ] || [ "${SLURM_NODEID:-0}" = 0 ]; then
    ray start --head --port 6379
    for h in node02; do
        ssh "$h" "ray start --address=node01:6379 --num-gpus 8" &
    done
    wait
    ray job submit --address=http://127.0.0.1:8265 -- python3 train.py --colocate --max-tokens-per-gpu 8192
else
    ray start --address=node01:6379 --block
fi
