#!/bin/bash
export DISABLE_VERSION_CHECK=1
BS=4
for cfg in examples/a.yaml examples/b.yaml; do
    llamafactory-cli train "$cfg" \
        per_device_train_batch_size=$BS \
        output_dir=saves/$(basename $cfg .yaml)/bs$BS \
        cutoff_len=2048 || exit 1
done
