#!/bin/bash
#SBATCH --nodes=1
for SEED in 1 2; do
    SEED=$SEED bash run.sh
done
bash run.sh
