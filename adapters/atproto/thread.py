"""Where a reply hangs."""

from __future__ import annotations

from adapters.atproto.types import ReplyRefs, StrongRef, ThreadNode


def resolve_reply_refs(parent: StrongRef, thread: ThreadNode | None) -> ReplyRefs:
    """The refs of a reply to `parent`, given the thread it was found in.

    The root is the one that the parent itself names; without that, or without a thread, the parent doubles as root.
    """
    named = thread.post.reply if thread else None
    return ReplyRefs(parent, named.root if named else parent)
