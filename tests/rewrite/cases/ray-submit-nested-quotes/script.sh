#!/bin/bash
HEAD=node01
ssh $HEAD "cd /ws && ray job submit --address=http://127.0.0.1:8265 --runtime-env-json='{\"working_dir\": \"/ws\"}' -- python3 -m openrlhf.cli.train_ppo_ray --train.micro_batch_size 4 --train.batch_size 64 --data.prompt_template \"Q: {}\" "
