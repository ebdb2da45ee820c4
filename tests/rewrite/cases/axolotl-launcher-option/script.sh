#!/bin/bash
axolotl train recipe.yml --launcher torchrun --flash-attention -- --nproc_per_node=4 --standalone
