#!/usr/bin/env bash
# Replay the AgentDojo attacks through the tool gate. The benchmark brings a hundred packages of its own, so it lives in
# an environment of its own, made once and made anew when its lock changes. PYTHON: which one to make it with.
set -euo pipefail
cd "$(dirname "$0")/../../.."
venv=.venv-agentdojo lock=requirements-agentdojo.lock
if ! cmp -s "$lock" "$venv/lock"; then
  if command -v uv >/dev/null; then
    uv venv -q --clear --python "${PYTHON:-python3}" "$venv"
    uv pip install -q --python "$venv/bin/python" --require-hashes --no-deps -r "$lock"
  else
    "${PYTHON:-python3}" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r "$lock"
  fi
  cp "$lock" "$venv/lock"
fi
exec "$venv/bin/python" -m pytest tests/security/agentdojo -m agentdojo --timeout 900 -s "$@"
