#!/bin/bash
#SBATCH --nodes=1
python3 train.py --colocate --wandb-group "run" --max-tokens-per-gpu 9216
