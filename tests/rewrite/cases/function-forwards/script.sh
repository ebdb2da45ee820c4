#!/bin/bash
#SBATCH --nodes=1
launch() {
    local name=$1
    shift
    echo "starting $name"
    python3 train.py --wandb-group "$name" "$@"
}
launch exp1 --colocate --max-tokens-per-gpu 9216 --use-dynamic-batch-size
