#!/bin/bash
bsz=64
seq=8
num_gpus=4
num_nodes=1
header="accelerate launch --num_processes $num_gpus --config_file conf/fsdp.yaml train_grpo.py"
base_arguments=(
    --report_to wandb
    --model_name_or_path /m/a
    --num_generations 8
    --per_device_train_batch_size $seq
    --gradient_accumulation_steps $(($bsz / $seq / $num_gpus / $num_nodes))
    --warmup_ratio 0.05
    #--optim adamw_torch_fused
    # Depending on model size
    #--gradient_checkpointing
    --bf16
    $@
)
echo command: "${header} ${base_arguments[@]}"
${header} "${base_arguments[@]}" 2>&1 | tee -a out.log
