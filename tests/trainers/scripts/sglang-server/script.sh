#!/bin/bash
PORT=30000
python3 -m sglang.launch_server --model-path /models/base --host 0.0.0.0 --port $PORT \
    --tp @tp|1@ --mem-fraction-static @fraction|0.85@ --context-length @len|32768@ @extra|@
