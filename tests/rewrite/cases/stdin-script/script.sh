#!/bin/bash
#SBATCH --nodes=1
python3 - <<'PY'
import os
print("--micro-batch-size 4")
PY
cat <<'EOF' | srun bash -s
torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 4
EOF
