"""What the fortnight left on GitHub and in the thread where the owner asked for it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.scenarios.days_audit import Days, alike
from tests.scenarios.days_events import BUILDERS, Events
from town.github.values import StoredIssue, StoredRepo

_PREFIX = "www-lil-intdev-"
_MOST_ALIKE = 0.6


@dataclass(frozen=True)
class Work:
    """The workspace and its plan, and who said what in the thread."""

    days: Days
    events: Events

    @property
    def workspaces(self) -> list[StoredRepo]:
        """All workspaces of the organisation."""
        assert self.days.town.places
        return [one for one in self.days.town.places.github.network.repos() if one.name.startswith(_PREFIX)]

    @property
    def plans(self) -> list[StoredIssue]:
        """All issues that hold a plan, wherever they stand."""
        issues = (issue for repo in self.workspaces for issue in repo.issues.values())
        return [issue for issue in issues if issue and issue.title.startswith("[PLAN]")]

    def titles(self) -> list[str]:
        """The titles of all issues and pull requests of the workspaces."""
        return [issue.title for repo in self.workspaces for issue in repo.issues.values() if issue]

    def said(self) -> dict[str, list[str]]:
        """What each SOUL said in the thread, by name."""
        assert self.events.building
        root = self.events.building.uri
        found: dict[str, list[str]] = {name: [] for name in self.days.town.souls}
        for thread in self.days.threads():
            for post in thread.posts if thread.root == root else ():
                if post.author.did in self.days.handles:
                    found[self.days.handles[post.author.did]].append(post.text)
        return found

    def silent(self) -> list[str]:
        """Who was asked, and neither replied nor liked."""
        assert self.events.building
        likers = self.days.likers(self.events.building.uri)
        return [name for name in BUILDERS if not self.said()[name] and name not in likers]

    def repeats(self) -> list[tuple[str, str]]:
        """Posts of the SOULs in the thread that say the same as an earlier one."""
        texts = [text for said in self.said().values() for text in said]
        return [
            (one, other)
            for number, other in enumerate(texts)
            for one in texts[:number]
            if alike(one, other) > _MOST_ALIKE
        ]
