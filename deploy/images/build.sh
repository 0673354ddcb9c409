#!/usr/bin/env bash
# build.sh [--builder NAME] [--base IMAGE] [--prebuilt BIN] [TARGET...]: builds the
# images as localhost/outrider-TARGET:COMMIT, which names no other build unless it
# ends with -dirty, and as :VERSION and :latest, which are those of the last one.
#   --builder NAME   buildah, docker or podman, in whose store the images are then;
#                    otherwise the first of these that is installed
#   --base IMAGE     in place of debian:12-slim, such as a local one, or one that
#                    trusts your proxy's authority
#   --prebuilt BIN   takes the programs of that folder; nothing is compiled. They
#                    must be of this commit and built on Debian 12, and so must be this machine's
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
short() { # a commit by its first twelve digits, with "-dirty" where files were changed
  local hash=${1%%-*}
  printf '%s%s' "${hash:0:12}" "${1#"$hash"}"
}
revision=${OUTRIDER_COMMIT:-$(git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown)}
commit=$(short "$revision")
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
# What goes along with the programs comes from this tree, and one name stands for both.
if [[ -n "$prebuilt" && "${targets[*]}" != demo-models ]]; then
  built=$("$prebuilt/outrider" --version)
  built=$(short "${built##* }")
  if [[ "$built" != "$commit" ]]; then
    echo "build.sh: the programs in $prebuilt are of $built, and this tree is $commit: build them anew (or say OUTRIDER_COMMIT where git cannot)" >&2 && exit 1
  fi
fi

artifacts=localhost/outrider-artifacts # what has /out, made once for all targets
if [[ -n "$prebuilt" ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  OUTRIDER_COMMIT=$commit deploy/images/collect.sh "$prebuilt" "$scratch/out"
  printf 'FROM scratch\nCOPY out /out\n' >"$scratch/Dockerfile"
  "${build[@]}" -t "$artifacts" -f "$scratch/Dockerfile" "$scratch"
elif [[ "${targets[*]}" != demo-models ]]; then
  "${build[@]}" --build-arg "BASE_IMAGE=$base" --build-arg "OUTRIDER_COMMIT=$commit" --target from-source -t "$artifacts" -f "$dockerfile" .
fi

tags=(latest "$version")
labels=(--label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.licenses=Apache-2.0")
if [[ "$commit" == unknown ]]; then
  echo "build.sh: git says no commit, nor does OUTRIDER_COMMIT, so no tag names a commit" >&2
else
  tags+=("$commit")
  labels+=(--label "org.opencontainers.image.revision=$revision")
fi
for target in "${targets[@]}"; do
  echo "build.sh: outrider-$target"
  "${build[@]}" --build-arg "BASE_IMAGE=$base" --build-arg "ARTIFACTS=$artifacts" "${labels[@]}" \
    --target "$target" "${tags[@]/#/--tag=localhost/outrider-$target:}" -f "$dockerfile" .
done
if [[ "$commit" != unknown ]]; then
  echo "build.sh: for deploy/components/images, or an overlay's field images: newTag: \"$commit\""
fi
