#!/bin/bash
TRIAL=${TRIAL:-${SLURM_JOB_NAME:-t}-$(date +%s)}
MAXTOK=${MAXTOK:-$((10 * 1024))}
python3 -m areal.launcher.slurm examples/math/gsm8k_grpo.py --config examples/math/gsm8k_grpo.yaml \
   experiment_name=e1 trial_name="$TRIAL" \
   allocation_mode=sglang.d4p1t1+d4p1t1 \
   actor.mb_spec.max_tokens_per_mb=${MAXTOK}   # tokens
