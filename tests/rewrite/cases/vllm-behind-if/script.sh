#!/bin/bash
MODEL=${1:-org/model}
vllm serve "$MODEL" --port 8000 --gpu_memory_utilization=0.95 --max-num-seqs 256 --swap-space 16 \
   --override-generation-config '{"temperature": 0.6}' --disable-log-requests > vllm.log 2>&1 &
PID=$!
until curl -s localhost:8000/health; do sleep 1; done
python3 bench.py --gpu-memory-utilization 0.95
pkill -f "vllm serve"
