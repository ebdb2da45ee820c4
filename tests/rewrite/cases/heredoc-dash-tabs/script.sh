#!/bin/bash
if true; then
	srun --label bash -s <<-'EOF'
		set -e
		python pretrain_gpt.py \
			--micro-batch-size 4 \
			--lr 1e-4
		echo "done --micro-batch-size 4"
	EOF
fi
