#!/bin/bash
#SBATCH --nodes=1
srun bash run.sh
