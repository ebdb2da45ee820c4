#!/bin/bash
#SBATCH --nodes=1
srun singularity exec --nv -B /data img.sif bash -c "cd /work; python -m torch.distributed.run --nproc_per_node=8 pretrain_gpt.py --micro-batch-size 4 --data-path /data/x"
