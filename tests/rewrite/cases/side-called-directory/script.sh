#!/bin/bash
#SBATCH --nodes=1
exec ./train/run.sh
