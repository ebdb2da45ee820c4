#!/bin/bash
MBS=${MBS:-4}
NODES=${NODES:-2}
PRETRAIN_ARGS=(
    --micro-batch-size ${MBS}
    --global-batch-size 128
    --use-megatron-fsdp
)
TRAINING_CMD="torchrun --nproc-per-node 8 --nnodes ${NODES} pretrain_gpt.py ${PRETRAIN_ARGS[@]}"
sbatch <<EOF
#!/bin/bash
#SBATCH --nodes=${NODES}
#SBATCH --dependency=singleton
srun --mpi=pmix -l --container-image=img bash -x -c "${TRAINING_CMD}" 2>&1 | tee log-\${SLURM_JOB_ID}.txt
EOF
