#!/bin/bash
#SBATCH --nodes=1
MAX=9216
python3 train.py ${COLOCATE:+--colocate} --use-dynamic-batch-size ${MAX:+--max-tokens-per-gpu $MAX}
