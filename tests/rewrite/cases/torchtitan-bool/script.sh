#!/bin/bash
#SBATCH --nodes=1
NGPU=${NGPU:-8}
torchrun --nproc_per_node=${NGPU} --local-ranks-filter 0 --role rank --tee 3 -m torchtitan.train \
    --module llama3 --config llama3_8b --training.no-enable_cpu_offload --training.local-batch-size 8
