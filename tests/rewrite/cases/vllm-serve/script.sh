#!/bin/bash
#SBATCH --nodes=1
vllm serve /models/base --tensor-parallel-size 8 --gpu_memory_utilization 0.95 --max-model-len 32768
