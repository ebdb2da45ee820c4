# SPDX-License-Identifier: Apache-2.0
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
launch() {
    torchrun --nproc_per_node "$1" pretrain_gpt.py "${COMMON[@]}" --lr 1e-4
}
