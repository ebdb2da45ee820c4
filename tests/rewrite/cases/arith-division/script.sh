#!/bin/bash
let SEQ=1024*4
(( MBS = 32 / 8 ))
NODES=${SLURM_JOB_NUM_NODES}
python pretrain_gpt.py --seq-length $SEQ --micro-batch-size $((MBS > 2 ? MBS : 2)) --global-batch-size $((2**8)) --train-iters $(( (1<<10) / NODES ))
