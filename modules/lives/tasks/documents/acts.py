"""The acts by which a document is offered, beside those that all tasks have."""

from __future__ import annotations

from modules.lives.tasks.acts import TaskActs
from modules.services.outbox.github_bodies import ContentsBody, RefBody
from modules.services.outbox.types import ProposedAction


class DocumentActs(TaskActs):
    """The acts for one task that asks for documents, under one claim."""

    __slots__ = ()

    @property
    def files(self) -> str:
        """The documents, as a list in Markdown."""
        return "\n".join(f"- `{path}`" for path in self.task.files)

    def branch(self, name: str, sha: str) -> ProposedAction:
        """Return the branch `name` on the commit `sha`."""
        ref = RefBody(**self.at(f"branch {name}"), action="create", branch=name, sha=sha, own_commit=True)
        return self.action("branch", ref)

    def document(self, path: str, text: str, *, branch: str, sha: str) -> ProposedAction:
        """Return the document as it is to stand on the branch; `sha` is that of the one it takes the place of."""
        contents = ContentsBody(
            **self.at(f"{path} on {branch}", text), path=path, content=text, message=self.title, branch=branch, sha=sha
        )
        return self.action(f"file:{path}", contents)
