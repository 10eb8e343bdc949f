"""Starting up stays quick: PyGithub is loaded by the first call, not by those who only name the client."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["types", "parse_url", "texts", "client"])
def test_importing_the_adapter_does_not_load_pygithub(module: str) -> None:
    code = f"import sys, adapters.github.{module}; sys.exit('github' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
