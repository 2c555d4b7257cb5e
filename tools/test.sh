#!/usr/bin/env bash
# The default test run: every test that is not slow, on every core.
# pytest's summary is the last thing it prints. Arguments are passed on to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/debian.sh
# Counted first: nproc itself obeys OMP_NUM_THREADS.
workers=$(nproc)
export OMP_NUM_THREADS=1
exec .venv/bin/python -m pytest -n "$workers" --dist worksteal \
    -m "not slow and not gpu" "$@"
