# Sourced by install.sh, start.sh and stop.sh: where things are.
RIG_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export RIG_RUN=$(realpath -m "${RIG_RUN:-/tmp/soul-bluesky-$(id -u)}") # the user postgres must be able to reach it
PG_DIR=$RIG_RUN/postgres TMP_DIR=$RIG_RUN/tmp # the only folders that stop.sh removes
RIG_PG_PORT=${RIG_PG_PORT:-2585}
: "${RIG_NODE_HOME:=$RIG_DIR/node22/node_modules/node-linux-$(uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')}"
NODE=$RIG_NODE_HOME/bin/node

die() { echo "$(basename "$0"): $*" >&2; exit 1; }

pg_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1; }

# PostgreSQL refuses to run as root.
as_pg() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; else "$@"; fi
}

# Is $1 alive, and the process that start.sh started for this run folder?
is_ours() {
  [ -n "$1" ] && [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF "$RIG_DIR/network.mjs $RIG_RUN "
}
