#!/bin/bash
cat > args.txt <<EOF
--micro-batch-size 4
--global-batch-size 64
EOF
python pretrain_gpt.py $(cat args.txt) --bf16
