#!/bin/bash
#SBATCH --nodes=1
srun bash -c "python3 -m verl.trainer.main_ppo trainer.logger=\"['console','wandb']\" actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=\"8\" trainer.nnodes=1"
