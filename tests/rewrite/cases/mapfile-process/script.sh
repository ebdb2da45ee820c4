#!/bin/bash
mapfile -t ARGS < <(cat <<'EOF'
--micro-batch-size
4
--use-flash-attn
--seq-length
4096
EOF
)
python pretrain_gpt.py "${ARGS[@]}"
