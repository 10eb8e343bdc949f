"""Starting up stays quick: the SDK is loaded by the first client, not by those who only name one."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["types", "richtext", "tid", "records", "session", "client"])
def test_importing_the_adapter_does_not_load_the_sdk(module: str) -> None:
    code = f"import sys, adapters.atproto.{module}; sys.exit('atproto_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
