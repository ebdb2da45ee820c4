#!/bin/bash
#SBATCH --nodes=1
trl sft --config conf/sft.yaml --output_dir out > log.txt 2>&1
