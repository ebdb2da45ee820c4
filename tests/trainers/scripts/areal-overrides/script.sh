#!/bin/bash
ARGS=(
    scheduler.type=ray
    actor.backend=@train|fsdp:d4@
    rollout.backend=@serve|sglang:d4@
    actor.mb_spec.max_tokens_per_mb=@tokens|10240@
    actor.gradient_checkpointing=@gc|true@
    rollout.max_concurrent_rollouts=@concurrent|256@
    sglang.mem_fraction_static=@fraction|0.8@
)
python3 -u examples/math/gsm8k_rl.py \
    --config grpo.yaml \
    "${ARGS[@]}" stats_logger.wandb.mode=disabled @extra|@
