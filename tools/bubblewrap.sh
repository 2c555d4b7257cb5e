#!/usr/bin/env bash
# Debian's bubblewrap for the tests of local sandboxes; instant where it is there.
# Who is not root is told the command, and those tests say that they were skipped.
set -euo pipefail
if command -v bwrap >/dev/null; then exit 0; fi
install="apt-get install -y --no-install-recommends bubblewrap"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "test: no bubblewrap, so local sandboxes are not tested: $install"
    exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
