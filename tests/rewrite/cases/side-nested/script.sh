#!/bin/bash
#SBATCH --nodes=1
cd .
bash train/run.sh fast
