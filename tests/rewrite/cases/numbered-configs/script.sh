#!/bin/bash
#SBATCH --nodes=1
for stage in pt sft; do
    FORCE_TORCHRUN=1 llamafactory-cli train conf/$stage.yaml output_dir=/o/$stage
done
