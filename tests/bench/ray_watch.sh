#!/bin/sh
# What watching a Ray cluster with 1,000 jobs costs: tests/bench/ray_watch.sh BUILD
set -eu
exec "${PYTHON:-/usr/bin/python3}" "$(dirname "$0")/ray_watch.py" "$1"
