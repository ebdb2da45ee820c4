#!/bin/bash
#SBATCH --nodes=1
source env.sh
bash run.sh
