"""Mutes accounts for the owner, and keeps the SOUL from people who are muted or asked for no reply.

It is a rule at admission and a gate at departure. An answer to a request about one's own data reaches people who asked
for no reply, but nobody whom the owner muted.
"""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from adapters.atproto.records import parse_at_uri
from common.person import account_words
from modules.runtime.journal.types import Entry
from modules.services.inbox import received
from modules.services.outbox import audit
from modules.services.outbox import store as outbox_store
from modules.services.outbox.bodies import DirectMessageBody, ReplyBody
from modules.services.outbox.rules.policy import is_about_rights, named_in
from modules.services.outbox.types import Intent, ProposedAction, Verdict, Wait
from modules.services.rights import store

MUTES = "mutes"  # the loop of these entries in the journal
_RULE = "mute"
_MUTED = "the owner muted this account"
_NO_REPLY = "this account asked for no reply"
_ASK_AGAIN_S = 60.0


def change_mute(
    connection: sqlite3.Connection, did: str, now: datetime, *, off: bool, handle: str = ""
) -> tuple[list[Intent], list[Entry]]:
    """Mute an account, or with `off` end its mute, without one its own request for no reply; `handle` is its label.

    Return the withdrawn acts that were to reach it, including those that the owner ordered, and the journal entries.
    """
    changed = store.let_speak(connection, did) if off else store.mute(connection, did, now)
    withdrawn = [] if off else outbox_store.withdraw_reaching(connection, did, _MUTED)
    summary = f"{account_words(handle, did)} {'unmuted' if off else 'muted'} by the owner"
    entries = [Entry("life", MUTES, summary, line="social", dids=(did,))] if changed else []
    return withdrawn, [*entries, *map(audit.stopped, withdrawn)]


def want_no_reply(connection: sqlite3.Connection, did: str, now: datetime) -> list[Entry]:
    """Record that an account asked for no reply, and withdraw what waits to reach it; return the journal entries.

    Answers about its data and acts that the owner ordered still leave.
    """
    store.want_no_reply(connection, did, now)
    withdrawn = outbox_store.withdraw_reaching(
        connection, did, _NO_REPLY, lambda one: not (one.by_owner or is_about_rights(one.body))
    )
    return [audit.stopped(one) for one in withdrawn]


def withdrawn_line(withdrawn: Sequence[Intent]) -> str:
    """Return a sentence that names the withdrawn acts; "" for none."""
    return f"Withdrawn before it left: {', '.join(one.deed for one in withdrawn)}" if withdrawn else ""


def mute_rule(connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:  # noqa: ARG001 - the shape of a rule
    """Refuse what would reach, name or quote such an account; what the owner asked for passes.

    Who only must not be named may still be left out, so that refusal does not ask for silence.
    """
    who, reason = _left_alone(connection, action)
    if not reason:
        return [Verdict(_RULE)]
    if who == _reached(action):
        return [Verdict(_RULE, "block", reason, who, instead="silence")]
    return [Verdict(_RULE, "block", f"do not name or quote {who}: {reason}", who)]


def mute_gate(connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:  # noqa: ARG001 - the shape of a gate
    """Hold an intent accepted before somebody whom it reaches or names asked for no reply, until that ends."""
    _, reason = _left_alone(connection, intent)
    return Wait(reason, _ASK_AGAIN_S) if reason else None


def _left_alone(connection: sqlite3.Connection, act: ProposedAction | Intent) -> tuple[str, str]:
    """Return whom an act may not reach (a DID) or name (as it does), and why; the reason is "" if there is nobody."""
    if act.kind == "delete" or act.by_owner:
        return "", ""
    names = [] if isinstance(act.body, DirectMessageBody) else named_in(act.body.public_text)
    dids = received.holders(connection, names)
    people = {dids.get(name, name): f"@{name}" if name in dids else name for name in names}
    people[_reached(act)] = _reached(act)
    not_to_reach = dict.fromkeys(store.muted_among(connection, people), _MUTED)
    if not is_about_rights(act.body):
        not_to_reach = dict.fromkeys(store.no_reply_among(connection, people), _NO_REPLY) | not_to_reach
    did = next((one for one in reversed(people) if one in not_to_reach), "")
    return (people[did], not_to_reach[did]) if did else ("", "")


def _reached(act: ProposedAction | Intent) -> str:
    """Return the DID of the account that an act reaches; for an act on something else, its target."""
    if isinstance(act.body, DirectMessageBody):
        return act.body.to
    if isinstance(act.body, ReplyBody) and act.body.told_to:
        return act.body.told_to
    at = parse_at_uri(act.target)
    return at.repo if at else act.target
