#!/bin/bash
#SBATCH --nodes=2
#SBATCH --mem=200G
PYTHONUNBUFFERED=1 srun --overlap --nodes=1 --ntasks=1 -w node01 \
    apptainer run --nv --bind /verl image.sif \
        python3 -m verl.trainer.main_ppo \
        data.train_batch_size=256 \
        actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
        actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \
        trainer.nnodes="${SLURM_NNODES}" 2>&1 | tee verl_demo_slurm.log
