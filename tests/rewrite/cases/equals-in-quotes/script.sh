#!/bin/bash
python3 train.py --colocate "--max-tokens-per-gpu=8192" --hf-checkpoint="/m/a b" '--save'="/ckpt"
