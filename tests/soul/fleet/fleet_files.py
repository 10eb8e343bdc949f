"""A FLEET.yaml of two homes for tests."""

from pathlib import Path
from typing import Any

import yaml

FLEET: dict[str, Any] = {
    "namespace": "souls",
    "image": "registry.example/soul:1",
    "settings": {"AI_GATEWAY_MODEL": "openai/gpt-5.2", "SOUL_DIRECT_MESSAGES": True},
    "homes": [
        {"name": "rowan", "settings": {"AGENT_BLUESKY_USERNAME": "rowan.test"}},
        {"name": "wren", "storage": "5Gi", "sleep": False},
    ],
}


def written(folder: Path, *, soul_md: str = "# A SOUL\n", **changes: Any) -> Path:
    """Write a fleet with these changes, and the SOUL.md of rowan and wren; return the fleet's file."""
    for name in ("rowan", "wren"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "SOUL.md").write_text(soul_md, encoding="utf-8")
    file = folder / "FLEET.yaml"
    file.write_text(yaml.safe_dump(FLEET | changes), encoding="utf-8")
    return file
