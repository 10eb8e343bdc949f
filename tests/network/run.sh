#!/usr/bin/env bash
# Installs what is missing, starts Bluesky's own software on loopback, runs the tests marked `network`, stops it.
# Arguments go to pytest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$RIG_DIR/install.sh"
trap '"$RIG_DIR/stop.sh"' EXIT
"$RIG_DIR/start.sh"
cd "$RIG_DIR/../.."
"${PYTHON:-python}" -m pytest -m network "$@"
