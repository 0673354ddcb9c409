#!/usr/bin/env bash
# What `make check-deploy` does once the programs are built. Every part says that
# it has passed, failed, or not run and why. Exit status: 0 unless one failed.
# Its words go to containers.py: --from-source, or --cuda, for which it builds the
# kernels for GPUs; ...
# shellcheck disable=SC2317 # functions are called through part
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
has() { [[ " $words " == *" $1 "* ]]; }
words=$*
if has --cuda && has --from-source; then
  echo "run.sh: --cuda does not go with --from-source: no stage of the Dockerfile has nvcc" >&2
  exit 2
fi
failed=0
summary=()

part() { # part NAME COMMAND...: exit status 77 means not run
  local name=$1
  shift
  printf '\n=== %s\n' "$name"
  "$@"
  case $? in
    0) summary+=("passed   $name") ;;
    77) summary+=("NOT RUN  $name") ;;
    *) summary+=("FAILED   $name") && failed=1 ;;
  esac
}

lint() {
  command -v "$1" >/dev/null || { echo "NOT RUN: $1 is not installed" && return 77; }
  "$@"
}

tests() { # also not run where one was skipped: its own words say why
  local output status
  output=$(ctest --preset release --verbose -R "$1" 2>&1)
  status=$?
  grep -E 'NOT RUN|Test +#|tests passed|FAIL|Error' <<<"$output"
  ((status == 0)) || printf '%s\n' "$output"
  if ((status == 0)) && grep -q 'NOT RUN' <<<"$output"; then return 77; fi
  return "$status"
}

tools/setup.sh --deploy || echo "Packages are missing: what needs them will not run"
part "yamllint" lint yamllint --strict --config-file deploy/check/yamllint.yaml deploy
part "shellcheck" lint shellcheck deploy/images/*.sh deploy/check/*.sh deploy/components/*/*.sh tools/*.sh
part "manifests: rendered, valid, right; broken ones caught; rules tested" tests 'deploy_(manifests|broken|examples|fetch)'
part "the real programs: metrics, TLS, Python clients" \
  tests 'integration_metrics|integration_tls|examples_python'
if has --cuda && ! has --no-build; then part "kernels for GPUs: compiled" make kernels; fi
part "containers: images built, pods run, load tests, restarts, drain" \
  tools/run-python-test.sh deploy/check/containers.py "$@"

printf '\n'
printf '%s\n' "${summary[@]}"
exit "$failed"
