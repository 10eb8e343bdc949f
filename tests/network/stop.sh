#!/usr/bin/env bash
# Stops what start.sh started, by process id, and removes its data. The logs of the last run stay.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
code=0
pid=$(cat "$RIG_RUN/node.pid" 2>/dev/null || true)
if is_ours "$pid"; then
  kill -TERM "$pid" 2>/dev/null
  for ((i = 0; i < 120; i++)); do is_ours "$pid" || break; sleep 0.1; done
  if is_ours "$pid"; then kill -KILL "$pid"; code=2; sleep 0.2; fi
fi
if [ -f "$PG_DIR/data/postmaster.pid" ]; then
  cd / && as_pg "$(pg_bin)/pg_ctl" -D "$PG_DIR/data" -m immediate -w -t 20 stop >/dev/null 2>&1 || code=3
fi
[ ! -d "$RIG_RUN" ] || rm -rf "$PG_DIR" "$TMP_DIR" "$RIG_RUN/node.pid" "$RIG_RUN/ready.json"
exit $code
