#!/bin/bash
#SBATCH --nodes=1
python3 -m areal.launcher.slurm examples/math/gsm8k_grpo.py --config conf/g.yaml actor.mb_spec.max_tokens_per_mb=10240 experiment_name=x &> >(tee a.log)
