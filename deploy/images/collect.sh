#!/usr/bin/env bash
# collect.sh BIN OUT: copies the programs of a build, and those of their libraries
# that are no Debian package's (libtorch and what it needs), to OUT/bin, OUT/lib.
set -euo pipefail
if (($# != 2)); then
  echo "usage: $0 BIN OUT" >&2
  exit 2
fi
bin=$1 out=$2
mkdir -p "$out/bin" "$out/lib"
for name in outrider outrider-coordinator outrider-drafter outrider-verifier; do
  install -m 755 "$bin/$name" "$out/bin/$name"
  strip --strip-unneeded "$out/bin/$name"
done
for program in outrider-drafter outrider-verifier; do
  ldd "$bin/$program" | awk '$2 == "=>" && $3 ~ /site-packages|torch/ {print $3}'
done | sort -u | while read -r library; do
  install -m 644 "$(readlink -f "$library")" "$out/lib/$(basename "$library")"
done
if [[ -z "$(ls -A "$out/lib")" ]]; then
  echo "collect.sh: $bin/outrider-verifier links no libtorch" >&2
  exit 1
fi
