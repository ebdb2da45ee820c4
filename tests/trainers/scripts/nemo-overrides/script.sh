#!/bin/bash
# ===== BEGIN CONFIG =====
NUM_NODES=1
CONFIG_PATH=conf/grpo.yaml
# ===== END CONFIG =====
uv run examples/run_grpo.py \
    --config $CONFIG_PATH \
    grpo.max_num_steps=450 \
    policy.train_micro_batch_size=@micro|4@ \
    policy.max_total_sequence_length=@seq|4096@ \
    policy.generation.vllm_cfg.gpu_memory_utilization=@util|0.6@ \
    @overrides|@ \
    logger.wandb_enabled=False \
    @extra|@ \
    $@ \
    2>&1 | tee run.log
exit ${PIPESTATUS[0]}
