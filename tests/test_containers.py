"""The container's files fit the program: what they copy, the program that they start, and the health check."""

import asyncio
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from common.clock import SystemClock
from common.settings import Settings
from modules.runtime.home import Home, HomeLock
from soul import cli
from tests.patience import HANG_S
from tests.project import ROOT


def test_the_image_is_built_from_all_that_the_wheel_needs_and_from_no_secret() -> None:
    taken = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        *wheel["packages"],
        *wheel["force-include"],
        "README.md",
        "LICENSE",
        "pyproject.toml",
        "requirements.lock",
    }
    assert set(taken) == needed


def test_each_container_starts_a_command_that_is_there_with_settings_that_exist() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert len(services) == 3
    for service in services.values():
        assert cli.run([*service.get("command", ["run"]), "--help"]) == 0
        assert {name.lower() for name in service["environment"]} <= set(Settings.model_fields)
    entry = re.search(r'^CMD \["(.+)"\]$', (ROOT / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert entry
    assert cli.run([entry[1], "--help"]) == 0


@pytest.mark.slow
async def test_the_health_check_tells_whether_somebody_is_awake(tmp_path: Path) -> None:
    asked = re.search(r"^HEALTHCHECK .* CMD (.+)$", (ROOT / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert asked
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    async def is_well() -> bool:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", asked[1], cwd=tmp_path, env={"PATH": path, "AGENT_NAME": "rowan"}
        )
        return await asyncio.wait_for(process.wait(), HANG_S) == 0

    assert not await is_well()
    with HomeLock(Home.at(tmp_path), agent_name="rowan", started_at=SystemClock().now()):
        assert await is_well()
    assert not await is_well()
