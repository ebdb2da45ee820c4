#!/bin/bash
PROFILE_CMD=""
if [ "${PROFILE:-0}" -eq 1 ]; then
    PROFILE_CMD="nsys profile -s none -t nvtx,cuda -o prof_%p --force-overwrite true --capture-range=cudaProfilerApi --capture-range-end=stop"
fi
LAUNCH="numactl --cpunodebind=0 --membind=0"
srun --mpi=pmix --cpu-bind=none $PROFILE_CMD $LAUNCH python pretrain_gpt.py --micro-batch-size 2 --profile --profile-step-start 10 --lr 1e-4
