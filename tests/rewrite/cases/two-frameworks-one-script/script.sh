#!/bin/bash
set -e
python3 -m verl.trainer.main_ppo data.train_batch_size=64 actor_rollout_ref.rollout.gpu_memory_utilization=0.7 trainer.nnodes=1
python3 -m verl.model_merger merge --backend fsdp --local_dir ckpt --target_dir out
python3 -m verl.trainer.main_eval data.path=out.parquet
python3 -m verl.trainer.main_generation model.path=out rollout.gpu_memory_utilization=0.7
