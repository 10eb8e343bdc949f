#!/usr/bin/env bash
# Replay the AgentDojo attacks through the tool gate. The benchmark brings a hundred packages of its own, so it lives in
# an environment of its own, made anew when its lock changes. PYTHON: which one to make it with.
set -euo pipefail
cd "$(dirname "$0")/../../.."
venv=.venv-agentdojo lock=tests/security/agentdojo/requirements.lock
if ! cmp -s "$lock" "$venv/lock"; then
  rm -rf "$venv"
  bash .ci/venv "$venv" "${PYTHON:-python3}" "$(command -v uv || true)" "$lock"
  cp "$lock" "$venv/lock"
fi
exec "$venv/bin/python" -m pytest tests/security/agentdojo -m agentdojo --timeout 900 -s "$@"
