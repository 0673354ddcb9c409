#!/usr/bin/env bash
# tidy.sh [BASE]: clang-tidy over the lines of C++ that differ from the commit BASE
# (the environment's OUTRIDER_TIDY_BASE, else where this branch left origin/main). In a
# clone of main itself there is no such commit: there the base is the farthest of the
# last 30 commits from which at most 6 files differ, as each costs a core 10 to 40 s;
# at least the last commit is checked, however much it changed. Each file is compiled
# alone, as in build/debug, which is configured for that, headers too: so it is also
# seen whether a file includes what it needs, which groups of files hide. Sources that
# it does not know are named and left out. Fails on what .clang-tidy calls an error.
set -euo pipefail
cd "$(dirname "$0")/.."
most_commits=30
most_files=6

changed_files() { git diff --name-only --diff-filter=d "$1" -- '*.cc' '*.h'; }

# The base where nothing says what this branch left.
recent_base() {
  local base=HEAD^ commit num_files
  for commit in $(git rev-list --first-parent --skip=1 --max-count="$most_commits" HEAD); do
    num_files=$(changed_files "$commit" | wc -l)
    ((num_files <= most_files)) || break
    base=$commit
  done
  echo "$base"
}

base=${1:-${OUTRIDER_TIDY_BASE:-}}
if [ -z "$base" ]; then
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(recent_base)
    echo "tidy: HEAD is no branch beside origin/main. What the last commits changed is checked, since" \
      "$(git log -1 --format='%h of %cs' "$base" 2>/dev/null || echo "$base"); OUTRIDER_TIDY_BASE names another base"
  fi
fi
if ! git rev-parse --quiet --verify "$base^{commit}" >/dev/null; then
  echo "tidy: no commit $base to compare with: fetch it (a shallow clone has none), or name another one" >&2
  exit 2
fi
cmake --preset debug >/dev/null
# These leave out nvcc's commands: headers beside kernels are compiled as the host's
# compiler has them, as clang takes none of nvcc's flags.
commands=$(mktemp -d)
log=$(mktemp)
trap 'rm -rf "$commands" "$log"' EXIT
python3 -c 'import json, sys
json.dump([one for one in json.load(sys.stdin) if not one["file"].endswith(".cu")], sys.stdout, indent=1)' \
  <build/debug/compile_commands.json >"$commands/compile_commands.json"
files=()
for file in $(changed_files "$base"); do
  # A header is compiled as its neighbours are.
  if grep -q "\"file\": \"$PWD/${file%.h}" "$commands/compile_commands.json" ||
    { [[ $file == *.h ]] && grep -q "\"file\": \"$PWD/$(dirname "$file")/[^/]*\.cc\"" "$commands/compile_commands.json"; }; then
    files+=("$file")
  else
    echo "tidy: NOT CHECKED, as it is not part of build/debug: $file"
  fi
done
echo "tidy: ${#files[@]} files differ from $(git rev-parse --short "$base")"
((${#files[@]})) || exit 0
# Generated headers must exist for the files to compile.
cmake --build --preset debug --target outrider_proto_sources outrider_google_rpc_proto_sources outrider_grpc_server_proto_sources >/dev/null
# clang-tidy-diff's exit status says nothing about what it found.
git diff -U0 "$base" -- "${files[@]}" |
  clang-tidy-diff-14.py -p1 -path "$commands" -j "$(nproc)" -quiet \
    -extra-arg=-Wno-error -extra-arg=-Wno-unknown-warning-option 2>/dev/null | tee "$log"
if grep -qE '^[^ ].*: error: ' "$log"; then
  exit 1
fi
