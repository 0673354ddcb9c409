#!/usr/bin/env bash
# tidy.sh [BASE]: clang-tidy over the lines of C++ that differ from the commit BASE
# (the environment's OUTRIDER_TIDY_BASE, else the commit before HEAD). Each file is
# compiled alone, as in build/debug, which is configured for that: so it is also seen
# whether a file includes what it needs, which groups of files hide. Sources that it does
# not know are named and left out. Fails on what .clang-tidy calls an error.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:-${OUTRIDER_TIDY_BASE:-HEAD^}}
if ! git rev-parse --quiet --verify "$base^{commit}" >/dev/null; then
  echo "tidy: NOT RUN: no commit $base to compare with (a shallow clone?)" >&2
  exit 0
fi
cmake --preset debug >/dev/null
files=()
for file in $(git diff --name-only --diff-filter=d "$base" -- '*.cc'); do
  if grep -q "\"file\": \"$PWD/$file\"" build/debug/compile_commands.json; then
    files+=("$file")
  else
    echo "tidy: NOT CHECKED, as it is not part of build/debug: $file"
  fi
done
echo "tidy: ${#files[@]} files differ from $(git rev-parse --short "$base")"
((${#files[@]})) || exit 0
# Generated headers must exist for the files to compile.
cmake --build --preset debug --target outrider_proto_sources outrider_google_rpc_proto_sources >/dev/null
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# clang-tidy-diff's exit status says nothing about what it found.
git diff -U0 "$base" -- "${files[@]}" |
  clang-tidy-diff-14.py -p1 -path build/debug -j "$(nproc)" -quiet \
    -extra-arg=-Wno-error -extra-arg=-Wno-unknown-warning-option 2>/dev/null | tee "$log"
if grep -qE '^[^ ].*: error: ' "$log"; then
  exit 1
fi
