#!/bin/bash
#SBATCH --nodes=1
python tools/convert_hf_to_torch_dist.py --hf-checkpoint /m --save /d --max-tokens-per-gpu 1
python -m sglang.launch_server --model /rm --mem-fraction-static 0.5 --max-tokens-per-gpu 9216 &
python3 train.py --colocate --max-tokens-per-gpu 9216
python tools/eval.py --ckpt /d --max-tokens-per-gpu 9216
