"""Files that come with the program: the skills, and the templates for a new home."""

from pathlib import Path

_SOURCE = Path(__file__).resolve().parent.parent
_INSTALLED = Path(__file__).resolve().parent / "templates"

SKILLS = _SOURCE / "skills"


def template(name: str) -> str:
    """Return the text of a template, such as `.env.example`, from the installed package or from a source checkout."""
    installed = _INSTALLED / name
    return (installed if installed.exists() else _SOURCE / name).read_text(encoding="utf-8")
