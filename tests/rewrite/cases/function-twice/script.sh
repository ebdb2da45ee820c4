#!/bin/bash
#SBATCH --nodes=1
COMMON="--colocate --use-dynamic-batch-size"
run() {
    python3 train.py $COMMON --max-tokens-per-gpu "$2" --wandb-group "$1"
}
run a 9216
run b 12288
