#!/usr/bin/env bash
# collect.sh BIN OUT: copies the programs of a build to OUT/bin, and to OUT/lib those
# of their libraries that are no Debian package's (ours with libtorch, and what that
# needs); the kernels for GPUs, where they were built, to OUT/cuda; and installs the
# gateway with what it needs from PyPI into OUT/gateway. It says that it is of
# OUTRIDER_COMMIT, where that is set.
set -euo pipefail
if (($# != 2)); then
  echo "usage: $0 BIN OUT" >&2
  exit 2
fi
bin=$1
mkdir -p "$2/bin" "$2/lib" "$2/cuda"
out=$(realpath "$2")
for name in outrider outrider-coordinator outrider-drafter outrider-verifier; do
  install -m 755 "$bin/$name" "$out/bin/$name"
  strip --strip-unneeded "$out/bin/$name"
done
torch=$bin/../lib/liboutrider_torch_model.so
install -m 644 "$torch" "$out/lib"
strip --strip-unneeded "$out/lib/$(basename "$torch")"
if ldd "$torch" | grep 'not found'; then
  echo "collect.sh: $torch needs these, which are not there" >&2
  exit 1
fi
ldd "$torch" | awk '$2 == "=>" && $3 ~ /site-packages|torch/ {print $3}' | while read -r library; do
  install -m 644 "$(readlink -f "$library")" "$out/lib/$(basename "$library")"
done
kernels=$bin/../lib/liboutrider_cuda_kernels.so
if [[ -f "$kernels" ]]; then
  install -m 644 "$kernels" "$out/cuda"
else
  echo "collect.sh: no kernels for GPUs in $(dirname "$kernels"): enough for all images but node-cuda"
fi
if [[ ! -f "$out/lib/libtorch_cpu.so" ]]; then
  echo "collect.sh: $torch links no libtorch" >&2
  exit 1
fi

# pip, and what makes the stubs, come from an environment that does not go along.
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
/usr/bin/python3 -m venv "$scratch/venv"
pip=("$scratch/venv/bin/pip" install --quiet --disable-pip-version-check --constraint gateway/constraints.txt)
"${pip[@]}" grpcio-tools
"$scratch/venv/bin/python" gateway/make_stubs.py
cp -r gateway "$scratch/gateway" # pip builds in the folder that it installs from
if [[ "${OUTRIDER_COMMIT:-unknown}" != unknown ]]; then
  echo "$OUTRIDER_COMMIT" >"$scratch/gateway/outrider_gateway/commit.txt"
fi
"${pip[@]}" --target "$out/gateway" "$scratch/gateway"
rm -rf "$out/gateway/bin" # scripts that name the environment's Python
