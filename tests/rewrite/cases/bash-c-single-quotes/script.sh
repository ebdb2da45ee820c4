#!/bin/bash
#SBATCH --nodes=2
srun -l --container-image=nvcr.io/nvidia/pytorch:25.01-py3 bash -c '
  cd /workspace
  torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 pretrain_gpt.py \
      --micro-batch-size 4 \
      --tokenizer-type "GPT2BPETokenizer" \
      --bf16
'
