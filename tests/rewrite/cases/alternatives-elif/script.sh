#!/bin/bash
#SBATCH --nodes=1
if [ "$MODE" = "a" ]; then
    python3 train.py --mode a --max-tokens-per-gpu 9216
elif [ "$MODE" = "b" ]; then
    python3 train_async.py --mode b --max-tokens-per-gpu 8192
else
    python3 train.py --mode c
fi
