#!/bin/bash
declare -x MBS=4
declare -x ARGS="--bf16 --micro-batch-size $MBS"
run_train() {
    local rank=$SLURM_PROCID
    echo "rank $rank uses $ARGS"
    python pretrain_gpt.py $ARGS --rank-label "r$rank"
}
export -f run_train
srun bash -c run_train
