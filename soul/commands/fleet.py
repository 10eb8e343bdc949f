"""`soul fleet`: many SOULs on a Kubernetes cluster, each in a Sandbox of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
import yaml

from common.files import expanded
from soul.fleet.fleet_file import read_fleet
from soul.fleet.manifests import manifests
from soul.terminal.output import write_lines

FleetFile = Annotated[
    Path, typer.Argument(metavar="FLEET.yaml", callback=expanded, help="The file that describes the fleet.")
]


def run_fleet_render(file: FleetFile) -> None:
    """Print the manifests as YAML. Raises `ConfigError`."""
    # NOTE(self): through JSON, for YAML would tell what two objects share as an anchor.
    told = json.loads(json.dumps(manifests(*read_fleet(file))))
    write_lines(*yaml.safe_dump_all(told, sort_keys=False, allow_unicode=True).splitlines())
