"""What a branch of a working tree changes, and a merge that stands in one."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A file that differs from where the branch began.

    Attributes:
        path: of the file.
        size: in bytes now; None once deleted.
        blob: the object that holds its content now, "" once deleted.
        is_picture: whether a binary file begins as a PNG, JPEG, GIF or WebP does.

    """

    path: str
    size: int | None
    is_binary: bool = False
    is_link: bool = False
    is_repository: bool = False
    blob: str = field(default="", compare=False)
    is_picture: bool = False


@dataclass(frozen=True, slots=True)
class BranchChanges:
    """What a branch adds to the commit that it began at.

    Attributes:
        branch: on which the tree stands.
        sha: its newest commit.
        commits: how many it has beyond `base`.
        merges: how many of these are merges, besides the one that was asked for.
        holds_base: whether it still contains the commit it began at.
        files: that differ.
        patch: how the files differ, for people and for a search in the lines that it adds. Of a file that it deletes
            only the name stands there.
        base: the commit that it is compared with.
        is_whole: whether `patch` is all of it: one of more than 4 MiB is cut.
        stat: one line on how much changed.

    """

    branch: str
    sha: str
    commits: int
    merges: int
    holds_base: bool
    files: tuple[TreeChange, ...]
    patch: str
    stat: str
    base: str = ""
    is_whole: bool = True

    @property
    def added(self) -> str:
        """The lines that it adds."""
        return "\n".join(line[1:] for line in self.patch.split("\n") if line.startswith("+"))


@dataclass(frozen=True, slots=True)
class Merging:
    """A merge that stands in the tree and is not committed yet.

    Attributes:
        start: a commit of no branch with the files as Git merged them, conflict markers included.
        ours: the commit into which it goes.
        theirs: the commit that is merged.
        conflicts: the paths that Git could not merge; their files hold conflict markers where both sides are text.
        told: what Git says of the conflicts, a line each.
        our_subjects: the subjects of the commits that only `ours` has, newest first.
        their_subjects: those of the commits that only `theirs` has.

    """

    start: str
    ours: str
    theirs: str
    conflicts: tuple[str, ...]
    told: tuple[str, ...]
    our_subjects: tuple[str, ...]
    their_subjects: tuple[str, ...]
