#!/bin/bash
timeout --signal=INT --kill-after=60 12h stdbuf -oL -eL python3 -u train.py --colocate --max-tokens-per-gpu 8192 >> out.log 2>> err.log
