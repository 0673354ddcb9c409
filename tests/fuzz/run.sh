#!/usr/bin/env bash
# run.sh [SECONDS [FUZZER...]]: builds the fuzzers, then runs each for so long
# (6 s), two at a time, from the seeds and from what earlier runs have learnt.
# Without SECONDS each begins with the seeds alone and has the same mutations in
# every run: a commit is tested by what it changed. What one finds stays in
# build/asan/fuzz; `FUZZER FILE` plays it again. Its repair puts it into
# seeds/found/FUZZER, and into a test of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-6}
seed=0  # drawn
corpora=learnt
(($#)) || { seed=1 corpora=fresh; }
build=build/asan
work=$build/fuzz

[ -f $build/build.ninja ] || cmake --preset asan
cmake --build --preset fuzz
fuzzers=("${@:2}")
if [ ${#fuzzers[@]} -eq 0 ]; then
  mapfile -t fuzzers < <(find $build/fuzzers -type f -executable -printf '%f\n' | sort)
fi

rm -rf $work/seeds $work/fresh
python3 -B tests/fuzz/make_seeds.py $work/seeds
export OUTRIDER_SOURCE_DIR=$PWD

fuzz() {
  local corpus=$work/$corpora/$1 log=$work/$1.log
  mkdir -p "$corpus"
  if $build/fuzzers/"$1" -seed=$seed -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 \
      -artifact_prefix="$work/$1-" "$corpus" "$work/seeds/$1" > "$log" 2>&1; then
    tail -1 "$log" | sed "s/^/$1: /"
  else
    tail -60 "$log"
    echo "FOUND by $1: see $work/$1-*"
    return 1
  fi
}
export -f fuzz
export build work seconds seed corpora
printf '%s\n' "${fuzzers[@]}" | xargs -P 2 -I{} bash -c 'fuzz {}'
