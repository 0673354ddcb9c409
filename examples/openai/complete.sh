#!/usr/bin/env bash
# complete.sh [BASE_URL]: a whole completion, then a stream, through the gateway by
# curl. An API key, where the gateway wants one, comes from the variable API_KEY.
set -euo pipefail
url=${1:-http://127.0.0.1:8000/v1}
ask=(curl --silent --show-error --fail-with-body --no-buffer "$url/completions"
  --header 'Content-Type: application/json' --header "Authorization: Bearer ${API_KEY:-none}")

"${ask[@]}" --data '{"model": "demo-target", "prompt": "def add(a, b):", "max_tokens": 16, "temperature": 0}'
printf '\n\n'
"${ask[@]}" --data '{"model": "demo-target", "prompt": "def add(a, b):", "max_tokens": 16, "temperature": 0,
  "stream": true, "stream_options": {"include_usage": true}}'
