#!/bin/bash
{
  echo '#!/bin/bash'
  echo 'python pretrain_gpt.py --micro-batch-size 4 --use-flash-attn'
} > job.sh
bash job.sh
