#!/usr/bin/env bash
# Debian's chromium for the tests of the reader's pages; instant where it is there.
# Who is not root is told the command, and those tests say that they were skipped.
set -euo pipefail
if command -v chromium >/dev/null; then exit 0; fi
install="apt-get install -y --no-install-recommends chromium fonts-dejavu-core"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "test: no chromium, so the reader is not tested in a browser: $install"
    exit 0
fi
echo "test: chromium, about 290 MB"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
