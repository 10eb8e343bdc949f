#!/usr/bin/env bash
# Installs what is missing and runs the tests that judge our GitHub. Arguments go to pytest.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/install.sh"
cd "$here/../.."
"${PYTHON:-python}" -m pytest -m interop tests/github_rig "$@"
