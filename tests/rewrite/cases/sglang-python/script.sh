#!/bin/bash
NODE_RANK=${SLURM_NODEID}
EXTRA="--mem-fraction-static=0.88"
case $NODE_RANK in
  0) exec python3 -m sglang.launch_server --model-path m --tp 16 --nnodes 2 --node-rank 0 $EXTRA --chunked-prefill-size 8192 ;;
  *) exec python3 -m sglang.launch_server --model-path m --tp 16 --nnodes 2 --node-rank "$NODE_RANK" $EXTRA --chunked-prefill-size 8192 ;;
esac
