#!/bin/bash
[ -f ckpt/latest ] && python3 train.py --colocate --load ckpt --max-tokens-per-gpu 8192 || python3 train.py --colocate --max-tokens-per-gpu 8192
