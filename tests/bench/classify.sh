#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The classifier against rg -c and grep -cE with the same literals, in one run on the same logs:
# quiet, dense in progress bars, and full of lines that almost match. Prints one line a log:
# GB/s of each, the ratios, and the peak memory of the classifier on the whole log and on its
# first 100 MiB. BYTES and DIR may be set.
#
#   tests/bench/classify.sh [BUILD]
set -eu
build=${1:-build}
bytes=${BYTES:-4294967296}
dir=${DIR:-${TMPDIR:-/tmp}}
work=$(mktemp -d "$dir/oomretry-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
bench=$build/bench/bench_classify
export OOMRETRY_PREFIX
OOMRETRY_PREFIX=$(cd "$build" && pwd)

"$bench" patterns | sort -u > "$work/literals"
# grep -E wants one expression; rg reads a file of fixed strings at its best speed.
sed 's/[][\.*^$(){}?+|/]/\\&/g' "$work/literals" | paste -sd'|' > "$work/expression"

seconds() { # of a command, by the wall clock
    local before after
    before=$(date +%s.%N)
    "$@" > /dev/null || [ $? -eq 1 ]
    after=$(date +%s.%N)
    echo "$after $before" | awk '{ printf "%.3f", $1 - $2 }'
}

printf '%-6s %9s %9s %9s %8s %8s %9s %9s\n' log oom_GB/s rg_GB/s grep_GB/s vs_rg vs_grep peak_MiB peak_100M
for kind in quiet bars near; do
    log=$work/$kind.log
    "$bench" make "$kind" "$bytes" > "$log"
    head -c 104857600 "$log" > "$work/short.log"
    cat "$log" > /dev/null # all three read from the page cache, as far as it reaches
    read -r _ ours _ speed _ _ _ peak _ < <("$bench" run "$log")
    read -r _ _ _ _ _ _ _ short _ < <("$bench" run "$work/short.log")
    size=$(stat -c %s "$log")
    rg=$(seconds rg -j1 --no-mmap -a -c -F -f "$work/literals" "$log")
    # grep takes minutes for what the others do in seconds: a part is enough for its speed.
    head -c $((size / 16)) "$log" > "$work/part.log"
    grep=$(LC_ALL=C seconds grep -a -cE -f "$work/expression" "$work/part.log")
    awk -v k="$kind" -v s="$speed" -v o="$ours" -v r="$rg" -v g="$grep" -v n="$size" -v p="$peak" -v q="$short" \
        'BEGIN { printf "%-6s %9.3f %9.3f %9.3f %7.2fx %7.2fx %9s %9s\n", k, s, n/1e9/r, n/16/1e9/g, r/o, g*16/o, p, q }'
    rm -f "$log"
done
