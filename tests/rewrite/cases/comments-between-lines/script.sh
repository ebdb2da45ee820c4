#!/bin/bash
#SBATCH --nodes=1
ARGS=(
   --colocate           # one pool
   # --max-tokens-per-gpu 1
   --max-tokens-per-gpu 9216 # was 12288
   #--micro-batch-size 16 # avoid OOM
)
python3 train.py "${ARGS[@]}" # --max-tokens-per-gpu 3
