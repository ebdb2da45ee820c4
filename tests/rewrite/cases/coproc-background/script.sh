#!/bin/bash
trap 'kill $(jobs -p) 2>/dev/null' EXIT
nvidia-smi dmon -o T > gpu.log &
python pretrain_gpt.py --micro-batch-size 4 --tensorboard-dir tb &
TRAIN_PID=$!
echo $TRAIN_PID > pid
wait "$TRAIN_PID"
rc=$?
exit $rc
