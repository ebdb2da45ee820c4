#!/bin/bash
#SBATCH --nodes=1
axolotl train conf/a.yml --micro-batch-size 4 --num-processes 8
