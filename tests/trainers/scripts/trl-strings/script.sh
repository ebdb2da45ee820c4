#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
export LAUNCHER="accelerate launch \
    --num_processes 8 \
    --num_machines 1 \
    "
export SCRIPT="@program|examples/sft.py@"
export SCRIPT_ARGS=" \
    --model_name_or_path /models/base \
    --per-device-train-batch-size @micro|8@ \
    --gradient_accumulation_steps @gas|2@ \
    @length|--max_length 8192@ \
    --bf16 true \
    @more|@ \
    --output_dir out @extra|@ \
    "
export CMD="$LAUNCHER $SCRIPT $SCRIPT_ARGS"
srun --jobid ${SLURM_JOB_ID:-1} bash -c "$CMD"
