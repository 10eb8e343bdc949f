#!/usr/bin/env bash
# Puts what the network needs beside this script: Node 22 (an npm package) and Bluesky's own server packages.
# Does nothing when that is done. Needs npm (any node), g++, make and python3, as better-sqlite3 is compiled here;
# PostgreSQL is the system's (root: installed if missing). Redis is not needed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [ -z "$(pg_bin)" ]; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || die "PostgreSQL is missing: apt-get install postgresql"
  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy postgresql
fi

STAMP=$RIG_DIR/node_modules/.installed
want=$(cat "$RIG_DIR/package.json" "$RIG_DIR/package-lock.json" | sha256sum | cut -c1-32)
if [ -x "$NODE" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$want" ]; then echo "installed: node $("$NODE" -v)"; exit 0; fi

if [ ! -x "$NODE" ]; then
  mkdir -p "$RIG_DIR/node22" && cd "$RIG_DIR/node22"
  [ -f package.json ] || echo '{"name":"node22","private":true}' >package.json
  npm install --no-save --no-audit --no-fund "$(basename "$RIG_NODE_HOME")@22.23.3"
fi

# Node 22 first on PATH, with its own headers: better-sqlite3 must be built for the node that runs it.
cd "$RIG_DIR"
export PATH=$RIG_NODE_HOME/bin:$PATH npm_config_nodedir=$RIG_NODE_HOME
npm ci --no-audit --no-fund
node -e 'require("better-sqlite3")(":memory:").close(); require("sharp"); console.log("native modules load, node", process.version)'
echo "$want" >"$STAMP"
