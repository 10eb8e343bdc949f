#!/usr/bin/env bash
# Installs the libraries of the JavaScript peers, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
[ -d node_modules/ws ] || npm ci --no-audit --no-fund --ignore-scripts --silent
