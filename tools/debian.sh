#!/usr/bin/env bash
# Debian's programs for the tests; instant where they are there. Who is not root is
# told the command, and the tests of that program say that they were skipped.
set -euo pipefail
need() {
    local program=$1 what=$2
    shift 2
    if command -v "$program" >/dev/null; then return; fi
    local install="apt-get install -y --no-install-recommends $*"
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "test: no $program, so $what: $install"
        return
    fi
    echo "test: installing $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
}
need chromium "pages are not tested in a browser" chromium fonts-dejavu-core
need bwrap "local sandboxes are not tested" bubblewrap
