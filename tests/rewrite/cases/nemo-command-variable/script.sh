#!/bin/bash
COMMAND="uv run ./examples/run_grpo.py --config conf/g.yaml policy.train_micro_batch_size=4 cluster.num_nodes=2" \
CONTAINER=img MOUNTS="$PWD:$PWD" \
sbatch --nodes=2 --job-name=grpo ray.sub
