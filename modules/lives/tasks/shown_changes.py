"""What the owner is shown of a push before they approve it: every file, and a readable part of the diff. Pure."""

from __future__ import annotations

import re

from adapters.git.diffs import fair_share
from adapters.git.worktree import BranchChanges, TreeChange
from common.text.untrusted import one_line
from modules.services.outbox.rules.policy import first_trusted

_MOST_CHARS = 20_000
_PATH_CHARS = 2_000
_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)


def shown_changes(changes: BranchChanges, clone: str) -> str:
    """Return the files of a branch and its diff, of at most 20,000 characters.

    Files that make the push wait come first. Each file gets a fair share of the diff, so that a long one hides no
    other; what is left out is counted, with the command that shows it. `clone` is where the clone lies, from the home.
    """
    files = sorted(changes.files, key=lambda one: not first_trusted([one.path]))
    listed = [f"- {one_line(one.path, _PATH_CHARS)} ({', '.join(_told(one))})" for one in files]
    trusted = [one.path for one in files if first_trusted([one.path])]
    sections = [one for one in _SECTION.split(changes.patch) if one]
    sections.sort(key=lambda one: not any(path in one.partition("\n")[0] for path in trusted))
    share = fair_share(map(len, sections), _MOST_CHARS)
    shown = [_cut(one, share) for one in sections]
    left_out = sum(max(0, len(one) - share) for one in sections)
    told = [changes.stat, "\n".join(listed)]
    if left_out or not changes.is_whole:
        some = f"{left_out:,} characters" if changes.is_whole else "More than 4 MiB"
        command = f"git --git-dir={clone}/.git diff {changes.base} {changes.sha}"
        told.append(f"{some} of the diff are not shown. To see all of it, run in the folder of the home:\n{command}")
    return "\n\n".join([*told, "".join(shown).strip("\n")])


def _told(file: TreeChange) -> list[str]:
    """What is told of a file beside its path."""
    kinds = {"link": file.is_link, "repository": file.is_repository, "binary": file.is_binary and not file.is_link}
    size = "deleted" if file.size is None and not file.is_repository else f"{file.size or 0:,} bytes"
    waits = "needs your approval" if first_trusted([file.path]) else ""
    return [size, *(kind for kind, is_it in kinds.items() if is_it), *filter(None, [waits])]


def _cut(section: str, share: int) -> str:
    if len(section) <= share:
        return section
    return f"{section[:share]}\n[{len(section) - share:,} more characters of this file]\n"
