#!/usr/bin/env bash
# Puts beside this script what judges our GitHub: GitHub's published OpenAPI description, Prism (a proxy that validates by
# it), emulate (an independent emulator), and the Node they need (an npm package). Does nothing when that is done.
# Needs npm (any node). No package's own scripts are run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec 9>.install.lock # two runs must not install at once
flock 9

version=24.21.0
name=node-linux-$(uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')
stamp=node_modules/.installed
want=$(cat package.json package-lock.json install.sh | sha256sum | cut -c1-32)
[ "$(cat "$stamp" 2>/dev/null)" != "$want" ] || exit 0

mkdir -p node24
[ -f node24/package.json ] || echo '{"name":"node24","private":true}' >node24/package.json
npm install --prefix node24 --no-save --ignore-scripts --no-audit --no-fund --loglevel=error "$name@$version"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
"node24/node_modules/$name/bin/node" --version
echo "$want" >"$stamp"
