#!/usr/bin/env -S bash -eu
#SBATCH --nodes=1
set -o pipefail; set -x
declare -i MBS=4 NW=8
declare -a ARGS=(--micro-batch-size $MBS --num-workers "$NW")
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}" |& tee log
