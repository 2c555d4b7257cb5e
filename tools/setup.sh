#!/usr/bin/env bash
# Make .venv hold torch and k3 with the given extras: tools/setup.sh vision,train,test,dev
# A stamp of what decides the outcome makes a second run instant.
set -euo pipefail
cd "$(dirname "$0")/.."
extras=$1
python=${PYTHON:-$(command -v python3.11 || command -v python3)}
now=$(cat pyproject.toml constraints.txt tools/setup.sh <(pwd) | sha256sum)

# Two makes at once wait for each other.
exec 9<tools/setup.sh
flock 9
for stamp in .venv/.installed-"$extras"*; do
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ]; then
        # Instant, unless a kernel's source has changed.
        .venv/bin/python k3/kernels/native/build.py >/dev/null
        exit 0
    fi
done

echo "setup: $("$python" --version) -> .venv [$extras], about 1.1 GB the first time"
# A half-made or moved environment has no pip that names this folder.
grep -qs "$(pwd)/.venv/" .venv/bin/pip || "$python" -m venv --clear .venv
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
# On a terminal pip shows its progress; a log gets our lines only.
quiet=(-qq)
if [ -t 1 ]; then quiet=(); fi
# torch first and alone: the exact pin takes the machine's CPU build, a range may not.
echo "setup: 1 of 2, $(grep '^torch==' constraints.txt)"
.venv/bin/pip install "${quiet[@]}" "$(grep '^torch==' constraints.txt)"
echo "setup: 2 of 2, k3 and its requirements"
.venv/bin/pip install "${quiet[@]}" -c constraints.txt -e ".[$extras]"
.venv/bin/python k3/kernels/native/build.py
echo "$now" >".venv/.installed-$extras"
echo "setup: done in $SECONDS s, .venv uses $(du -sh .venv | cut -f1)"
