#!/bin/bash
set -euo pipefail
HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
source "$HERE/lib/launch.sh"
launch @tokens@ > >(tee -a "$HERE/train.log") 2>&1
