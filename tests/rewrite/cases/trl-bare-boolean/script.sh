#!/bin/bash
#SBATCH --nodes=1
trl sft --model_name_or_path m --gradient_checkpointing --per-device-train-batch-size=8 --packing
