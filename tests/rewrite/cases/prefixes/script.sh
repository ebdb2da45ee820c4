#!/bin/bash
#SBATCH --nodes=1
time nohup env -u DISPLAY OMP_NUM_THREADS=8 timeout --signal=TERM 23h numactl --interleave=all taskset -c 0-63 \
    nice -n 5 stdbuf -oL python -u pretrain_gpt.py --micro-batch-size 4 --lr 1e-4
