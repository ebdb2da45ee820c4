#!/bin/bash
NUM_ACTOR_NODES=2
CONFIG=examples/configs/grpo.yaml
COMMAND="NRL_FORCE=1 uv run ./examples/run_grpo_math.py \
    --config ${CONFIG} \
    cluster.num_nodes=${NUM_ACTOR_NODES} \
    policy.train_micro_batch_size=4 \
    checkpointing.checkpoint_dir='results/ckpt' \
    logger.wandb_enabled=True" \
CONTAINER=image.sqsh \
MOUNTS="$PWD:$PWD" \
sbatch --nodes=${NUM_ACTOR_NODES} --account=a --job-name=j --partition=p ray.sub
