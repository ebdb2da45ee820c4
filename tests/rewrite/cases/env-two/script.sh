#!/bin/bash
srun torchrun --nproc-per-node 8 train.py --colocate --max-tokens-per-gpu 9216
