#!/bin/bash
ray job submit --runtime-env-json '{"working_dir": "/w", "excludes": ["*.pt"]}' -- python3 train.py --colocate --max-tokens-per-gpu 9216
