"""The contract of each skill: the sections that a page must have, and the variables that each may use.

It is derived from the shipped pages and stored beside them in `contracts.json`, so that a page that was changed or
damaged later is found at start. After a change of the shipped pages, run
`python -m modules.services.skills.contracts skills`.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from common.files import write_atomic
from modules.services.skills.skills import CONTRACTS, Skills


def derived(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return skill → section or `Section / Subsection` → its variables, from the pages in `folder`.

    A section with subsections is listed by them, unless the front matter lists it under `open`.

    Raises:
        SkillError: a page cannot be read.

    """
    skills = Skills.load(folder, {})
    return {
        name: {part: " ".join(sorted(used)) for part, used in skills.contract(name).items()}
        for name in sorted(skills.names)
    }


if __name__ == "__main__":
    write_atomic(Path(sys.argv[1]) / CONTRACTS, json.dumps(derived(Path(sys.argv[1])), indent=1) + "\n")
