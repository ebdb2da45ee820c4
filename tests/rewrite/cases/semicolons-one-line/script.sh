#!/bin/bash
cd /ws && export A=1; ulimit -n 65536; python3 train.py --colocate --max-tokens-per-gpu 8192 || { echo failed; exit 1; }; echo ok
