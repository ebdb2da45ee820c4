#!/bin/bash
FORCE_TORCHRUN=1 llamafactory-cli train conf/a.yaml
llamafactory-cli export conf/merge.yaml
llamafactory-cli eval conf/eval.yaml
