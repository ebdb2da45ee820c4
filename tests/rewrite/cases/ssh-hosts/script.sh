#!/bin/bash
#SBATCH --nodes=2
for h in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    ssh "$h" "pkill -9 sglang; ray start --address=node01:6379" &
done
wait
ssh node01 "cd /work && python3 train.py --colocate --max-tokens-per-gpu 9216 --save '/ckpt/a b'"
