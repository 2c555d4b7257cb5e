#!/bin/sh
# lm-eval 0.4.13 against a running server, offline: benchmarks/lm_eval/run.sh [URL]
# Its own environment: python -m venv X && X/bin/pip install 'lm-eval[api]==0.4.13'
set -eu
cd "$(dirname "$0")"
url=${1:-http://127.0.0.1:8000}
export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1
model=$(curl -sf "$url/v1/models" | sed 's/.*"id":"\([^"]*\)".*/\1/')
args="model=$model,base_url=$url/v1/completions,tokenizer_backend=remote"
exec "${LM_EVAL:-lm_eval}" run --model local-completions \
    --model_args "$args,num_concurrent=4,max_length=2048" \
    --tasks k3_pairs,k3_bytes,k3_stops --include_path . --seed 0
