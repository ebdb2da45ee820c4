#!/bin/bash
#SBATCH --nodes=1
FORCE_TORCHRUN=1 llamafactory-cli train conf/sft.yaml learning_rate=1e-5 > log
