#!/bin/bash
#SBATCH --nodes=1
srun bash <<'END' 2>&1 | tee out.log
ARGS="--bf16 --micro-batch-size 4"
torchrun --nproc-per-node 8 pretrain_gpt.py $ARGS --save '/ckpt/x'
END
