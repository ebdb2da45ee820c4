#!/bin/bash
#SBATCH --nodes=1
python3 -m verl.trainer.main_ppo data.train_files="['/d/a.parquet','/d/b.parquet']" \
    actor_rollout_ref.rollout.gpu_memory_utilization="0.6" 'trainer.logger=["console"]' \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=$((2 * 4)) > >(tee out.log) 2> err.log
