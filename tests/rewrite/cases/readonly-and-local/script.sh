#!/bin/bash
#SBATCH --nodes=1
readonly MBS=4
main() {
    local -r args="--micro-batch-size ${MBS} --bf16"
    torchrun --nproc-per-node 8 pretrain_gpt.py ${args}
}
main "$@"
