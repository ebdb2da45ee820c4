#!/bin/bash
xargs python pretrain_gpt.py --bf16 <<'EOF'
--micro-batch-size 4
--seq-length 4096
EOF
