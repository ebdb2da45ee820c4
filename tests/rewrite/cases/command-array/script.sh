#!/bin/bash
#SBATCH --nodes=1
CMD=(torchrun --nproc-per-node 8 pretrain_gpt.py)
CMD+=(--micro-batch-size 4 --lr 1e-4)
echo "${CMD[@]}"
"${CMD[@]}" 2>&1 | tee train.log
exit ${PIPESTATUS[0]}
