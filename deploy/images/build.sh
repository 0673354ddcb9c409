#!/usr/bin/env bash
# build.sh [--builder NAME] [--base IMAGE] [--prebuilt BIN] [TARGET...]: builds the
# images as localhost/outrider-TARGET:latest, and :VERSION.
#   --builder NAME   buildah, docker or podman, in whose store the images are then;
#                    otherwise the first of these that is installed
#   --base IMAGE     in place of debian:12-slim, such as a local one, or one that
#                    trusts your proxy's authority
#   --prebuilt BIN   takes the programs of that folder; nothing is compiled. They
#                    must have been built on Debian 12, and so must be this machine's
#                    Python, whose packages the gateway's image gets.
# TARGETs: coordinator gateway node-cpu demo-models (all four by default), node-cuda,
# only with --prebuilt: its kernels for GPUs are BIN/../lib/liboutrider_cuda_kernels.so,
# which `make kernels` builds where the CUDA Toolkit is; no stage of ours has that.
set -euo pipefail
cd "$(dirname "$0")/../.."

builder=
base=debian:12-slim
prebuilt=
targets=()
while (($#)); do
  case "$1" in
    --builder) builder=${2:?--builder needs buildah, docker or podman} && shift 2 ;;
    --base) base=${2:?--base needs an image} && shift 2 ;;
    --prebuilt) prebuilt=${2:?--prebuilt needs a folder} && shift 2 ;;
    coordinator | gateway | node-cpu | node-cuda | demo-models) targets+=("$1") && shift ;;
    *) echo "build.sh: unknown word \"$1\"; see its first lines" >&2 && exit 2 ;;
  esac
done
((${#targets[@]})) || targets=(coordinator gateway node-cpu demo-models)
if [[ " ${targets[*]} " == *" node-cuda "* ]]; then
  if [[ -z "$prebuilt" ]]; then
    echo "build.sh: node-cuda takes --prebuilt BIN, as no stage of the Dockerfile has nvcc" >&2 && exit 2
  elif [[ ! -f "$prebuilt/../lib/liboutrider_cuda_kernels.so" ]]; then
    echo "build.sh: $prebuilt/../lib has no kernels for GPUs; \`make kernels\` builds them where the CUDA Toolkit is" >&2 && exit 1
  fi
fi
version=$(sed -n 's/^project(outrider VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

for name in buildah docker podman; do
  if [[ -z "$builder" ]] && command -v "$name" >/dev/null; then builder=$name; fi
done
case "$builder" in
  buildah) build=(buildah bud) ;;
  docker | podman) build=("$builder" build) ;;
  "") echo "build.sh: install buildah, docker or podman" >&2 && exit 1 ;;
  *) echo "build.sh: --builder is buildah, docker or podman, not \"$builder\"" >&2 && exit 2 ;;
esac
command -v "$builder" >/dev/null || { echo "build.sh: $builder is not installed" >&2 && exit 1; }

dockerfile=deploy/images/Dockerfile
artifacts=localhost/outrider-artifacts # what has /out, made once for all targets
if [[ -n "$prebuilt" ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  deploy/images/collect.sh "$prebuilt" "$scratch/out"
  printf 'FROM scratch\nCOPY out /out\n' >"$scratch/Dockerfile"
  "${build[@]}" -t "$artifacts" -f "$scratch/Dockerfile" "$scratch"
elif [[ "${targets[*]}" != demo-models ]]; then
  commit=$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)
  "${build[@]}" --build-arg "BASE_IMAGE=$base" --build-arg "OUTRIDER_COMMIT=$commit" --target from-source -t "$artifacts" -f "$dockerfile" .
fi

for target in "${targets[@]}"; do
  echo "build.sh: outrider-$target"
  "${build[@]}" --build-arg "BASE_IMAGE=$base" --build-arg "ARTIFACTS=$artifacts" \
    --target "$target" -t "localhost/outrider-$target:latest" -t "localhost/outrider-$target:$version" \
    -f "$dockerfile" .
done
