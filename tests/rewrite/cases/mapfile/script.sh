#!/bin/bash
#SBATCH --nodes=1
mapfile -t ARGS <<'EOF'
--micro-batch-size
4
--bf16
EOF
torchrun --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"
