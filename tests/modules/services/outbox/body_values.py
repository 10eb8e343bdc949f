"""Bodies for tests: a test gives what matters, and the rest is filled in."""

from typing import Any

from modules.services.outbox.bodies import IntentKind, KnownBody, OpaqueBody, RecordRef, ReplyBody, read_body


def reply_body(text: str, to: str, *, root: str = "", cid: str = "cid") -> ReplyBody:
    """Return a reply to the post at `to`, in the thread that begins at `root`, or at `to` without one."""
    return ReplyBody(text=text, parent=RecordRef(uri=to, cid=cid), root=RecordRef(uri=root or to, cid=cid))


def body_of(kind: IntentKind, subject: str = "at://subject", **stored: Any) -> KnownBody:
    """Return a body of any kind on `subject`; `stored` are fields as they are in the table."""
    ref = {"uri": subject, "cid": "cid"}
    words = {"text": "Slate sings."}
    on_github = {"repo": "a/b", "body": "Do it."}
    at_one = {"repo": "a/b", "number": 1}
    least: dict[IntentKind, dict[str, Any]] = {
        "post": words,
        "reply": {**words, "parent": ref, "root": ref},
        "like": ref,
        "repost": ref,
        "follow": {"did": subject},
        "delete": {"uri": subject},
        "threadgate": {"uri": subject, "replies": []},
        "issue": {**on_github, "title": "One"},
        "issue_comment": {**on_github, "number": 1},
        "issue_update": {**at_one, "state": "closed"},
        "label": {**at_one, "add": ["plan"]},
        "assignee": {**at_one, "add": ["ada"]},
        "reaction": {**at_one, "reaction": "rocket"},
        "star": {"repo": "a/b"},
        "account_follow": {"repo": "ada/ada"},
        "comment_deletion": {**at_one, "comment_id": 7},
        "pull_request": {**on_github, "title": "One", "head": "soul/1-one", "base": "main"},
        "review_request": {**at_one, "reviewers": ["ada"]},
        "review": {**at_one, "event": "APPROVE"},
        "merge": at_one,
        "branch_update": {**at_one, "head_sha": "a" * 40},
        "ref": {"repo": "a/b", "action": "create", "branch": "soul/1-one", "sha": "a" * 40},
        "contents": {"repo": "a/b", "path": "a.md", "content": "One.", "message": "Add one"},
        "push": {"repo": "a/b", "branch": "task-1-one", "sha": "a" * 40, "folder": ".workrepos/one"},
        "repository": {"repo": "a/b", "template": "c/d"},
        "space_chat": words,
        "direct_message": {**words, "conversation_id": "talk", "to": "did:plc:ada"},
    }
    body = read_body(kind, {**least[kind], **stored})
    assert not isinstance(body, OpaqueBody)
    return body
