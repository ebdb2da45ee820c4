#!/bin/bash
#SBATCH --nodes=1
# ===== BEGIN CONFIG =====
NUM_NODES=1
STEPS=100
# ===== END CONFIG =====
CONFIG_PATH=conf/grpo.yaml
RUN_LOG=run.log
uv run examples/run_grpo.py \
    --config $CONFIG_PATH \
    grpo.max_num_steps=$STEPS \
    logger.wandb_enabled=True \
    $@ \
    2>&1 | tee $RUN_LOG
