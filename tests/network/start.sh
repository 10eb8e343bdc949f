#!/usr/bin/env bash
# Starts the network on 127.0.0.1 and prints one JSON line when it is ready: addresses and process id.
# A second start prints the same line. Every start is a fresh, empty network.
#   RIG_RUN=folder              data, logs, process ids
#   RIG_{CONTROL,PLC,PDS,APPVIEW,PG,BSYNC}_PORT=number
#   RIG_RATE_LIMITS=0           lift the rate limits; no ratelimit-* headers then
#   RIG_TIMEOUT=seconds
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
TIMEOUT=${RIG_TIMEOUT:-120}
PG_BIN=$(pg_bin)

[ -x "$NODE" ] && [ -d "$RIG_DIR/node_modules/@atproto/dev-env" ] || die "packages are missing: run install.sh"
[ -n "$PG_BIN" ] || die "PostgreSQL is missing: run install.sh"
mkdir -p "$RIG_RUN"
exec 9>"$RIG_RUN/start.lock"
flock -w "$TIMEOUT" 9 || die "another start.sh holds $RIG_RUN/start.lock"
old=$(cat "$RIG_RUN/node.pid" 2>/dev/null || true)
if is_ours "$old"; then
  if [ -s "$RIG_RUN/ready.json" ]; then cat "$RIG_RUN/ready.json"; exit 0; fi
  die "process $old is still starting or stopping"
fi
"$RIG_DIR/stop.sh" >/dev/null 2>&1 || true # what a run that died left behind

for port in "${RIG_CONTROL_PORT:-2580}" "${RIG_PLC_PORT:-2582}" "${RIG_PDS_PORT:-2583}" "${RIG_APPVIEW_PORT:-2584}" \
  "$RIG_PG_PORT" "${RIG_BSYNC_PORT:-2586}"; do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then die "port $port on 127.0.0.1 is in use"; fi
done

fail() {
  echo "start.sh: $*; last log lines:" >&2
  for log in "$RIG_RUN"/*.log; do tail -n 15 "$log" | cut -c1-500 >&2 || true; done
  "$RIG_DIR/stop.sh" >/dev/null 2>&1 || true
  exit 1
}

mkdir -p "$TMP_DIR" "$PG_DIR"
chmod 755 "$RIG_RUN"
rm -f "$RIG_RUN"/*.log
[ "$(id -u)" != 0 ] || chown postgres: "$PG_DIR"
cd "$RIG_RUN"
as_pg "$PG_BIN/initdb" -D "$PG_DIR/data" -U rig -A trust -E UTF8 --locale=C -N --no-instructions \
  >"$RIG_RUN/initdb.log" 2>&1 || fail "initdb failed"
as_pg "$PG_BIN/pg_ctl" -D "$PG_DIR/data" -w -t 30 -l "$PG_DIR/postgres.log" -o "-p $RIG_PG_PORT \
  -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c synchronous_commit=off \
  -c full_page_writes=off -c max_connections=80 -c shared_buffers=64MB -c max_wal_size=256MB" \
  start >"$RIG_RUN/pg_ctl.log" 2>&1 </dev/null 9>&- || fail "PostgreSQL did not start"

# TMPDIR: the packages put data, files and port locks under os.tmpdir().
export TMPDIR=$TMP_DIR RIG_READY_FILE=$RIG_RUN/ready.json DB_POSTGRES_URL="postgresql://rig@127.0.0.1:$RIG_PG_PORT/postgres"
export NODE_ENV=test LOG_ENABLED=true LOG_LEVEL=${LOG_LEVEL:-warn} LOG_DESTINATION=$RIG_RUN/services.log
cd "$RIG_DIR"
setsid "$NODE" "$RIG_DIR/network.mjs" "$RIG_RUN" >"$RIG_RUN/node.log" 2>&1 </dev/null 9>&- &
pid=$!
echo "$pid" >"$RIG_RUN/node.pid"
for ((i = 0; i < TIMEOUT * 10; i++)); do
  if [ -s "$RIG_RUN/ready.json" ]; then cat "$RIG_RUN/ready.json"; exit 0; fi
  kill -0 "$pid" 2>/dev/null || fail "node ended early"
  sleep 0.1
done
fail "not ready in $TIMEOUT s"
