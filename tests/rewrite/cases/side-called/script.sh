#!/bin/bash
#SBATCH --nodes=1
bash train/run.sh
