#!/usr/bin/env bash
# run-python-test.sh SCRIPT: runs a test with the Python of .venv-test. Exit status
# 77, which ctest knows as skipped, where tools/setup.sh could not make it: the stamp
# is there once pip has installed everything.
set -euo pipefail
environment="$(dirname "$0")/../.venv-test"
if [[ ! -f "$environment/.outrider-test" ]]; then
  echo "NOT RUN: $1 needs .venv-test; tools/setup.sh makes it from PyPI" >&2
  exit 77
fi
exec "$environment/bin/python" -B "$@"
