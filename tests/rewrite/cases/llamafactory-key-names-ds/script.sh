#!/bin/bash
#SBATCH --nodes=1
llamafactory-cli train conf/sft.yaml deepspeed=other.json
