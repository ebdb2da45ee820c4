#!/bin/bash
#SBATCH --nodes=1
python -m sglang.launch_server --model-path /m --tp 8 --mem-fraction-static 0.9 --port 30000
