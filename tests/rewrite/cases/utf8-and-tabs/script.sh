#!/bin/bash
#SBATCH --nodes=1
# größe → 9216 ✓
NAME='größe-9216'
ARGS=(
	--max-tokens-per-gpu	9216
	--wandb-group "$NAME"
)
python3 train.py --colocate "${ARGS[@]}"
