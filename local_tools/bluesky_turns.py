"""What the tools of Bluesky read of the turn in which they are called."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from adapters.atproto.richtext import detect_mentions
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.provenance import Provenance
from common.text.graphemes import grapheme_len, leading_sentences
from local_tools.words import ToolWords
from modules.lives.bluesky.request_policy import act_to_do_first, is_request, tools_for_request
from modules.lives.bluesky.types import Act, ExpressionTurn, Published, ThreadTurn
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.commitments.writer import contains_promise
from modules.services.peers.identity_post import tells_username

_SENTENCES = re.compile(r"(?<=[.!?…])\s+")
Handler: TypeAlias = Callable[[Any, Turn], Awaitable[ToolResult]]


def thread_of(turn: Turn) -> ThreadTurn:
    """Return the thread of a turn about one post. Raises `TypeError` for any other turn."""
    if not isinstance(turn.subject, ThreadTurn):
        raise TypeError("the registry offers this tool in thread turns only")
    return turn.subject


def fitted(text: str, turn: Turn, most: int = PORTABLE_MAX_GRAPHEMES) -> str:
    """`text`, or its whole leading sentences where the model was asked to shorten it once already and could not.

    Small models cannot count; a thought is better told without its last sentence than lost.
    """
    subject = turn.subject
    if isinstance(subject, ThreadTurn | ExpressionTurn) and grapheme_len(text) > most:
        return text if subject.revisions.ask_for_shorter() else leading_sentences(text, most) or text
    return text


def bare_account(text: str, account: str) -> str:
    """Return `text` with an @ before `account`, our name on GitHub, taken away: nobody of Bluesky is meant by it."""
    return re.sub(rf"`?@{re.escape(account)}`?(?![\w-]|\.\w)", f"`{account}`", text) if account else text


def told_account(text: str, account: str) -> bool:
    """Return whether `text` tells `account`, our name on GitHub; also where `account` is "" and none is due."""
    return not account or tells_username(text, account)


def add_sentence(text: str, sentence: str, most: int) -> str:
    """Return `text` and `sentence` in at most `most` characters; the last sentences of `text` give way.

    `text` stays alone where not even its first sentence fits beside `sentence`.
    """
    whole = f"{text.rstrip()} {sentence}"
    if grapheme_len(whole) <= most:
        return whole
    leading = leading_sentences(text, most - grapheme_len(sentence) - 1)
    return f"{leading.rstrip()} {sentence}" if leading else text


def is_urgent(turn: Turn) -> bool:
    """Return whether what the turn does goes ahead of the pace: it answers the owner."""
    return turn.provenance is Provenance.OWNER or (isinstance(turn.subject, ThreadTurn) and turn.subject.is_owner)


def once_for(turn: Turn) -> str:
    """Return the name under which a post that answers a request in public is said once; "" for any other post."""
    return f"request:{turn.cause_id}" if isinstance(turn.subject, ThreadTurn) else ""


def is_by_owner(turn: Turn) -> bool:
    """Return whether only the owner takes part in it."""
    return turn.provenance is Provenance.OWNER


def post_problem(text: str, turn: Turn) -> Literal["Post Not Sent", "Post Itself"] | None:
    """Return why `text` must not be posted, as the name of the answer that the model reads; None if it may.

    It holds words that only our own prompt has, but for those that were said in the thread; or it says that something
    will be posted, where the owner asks for the post itself. The latter is returned once: a model that says the same
    again means it.
    """
    subject = turn.subject
    if isinstance(subject, ExpressionTurn):
        return "Post Not Sent" if subject.scaffold.is_in(text) else None
    if not isinstance(subject, ThreadTurn):
        return None
    if subject.scaffold.is_in(text, (*subject.said, subject.notification.text)):
        return "Post Not Sent"
    speaks_of_it = contains_promise(text) or bool(act_to_do_first(text))
    return "Post Itself" if speaks_of_it and subject.revisions.ask_for_post() else None


def serves_request(name: str) -> Callable[[Turn], bool]:
    """Return whether the tool `name` can serve a turn: in one about a post of the owner's, what the post asks for."""

    def serves(turn: Turn) -> bool:
        if not isinstance(turn.subject, ThreadTurn) or not turn.subject.is_owner:
            return True
        return name in tools_for_request(turn.subject.notification.text)

    return serves


def named_in_request(turn: Turn) -> list[str]:
    """Return the handles that the owner's post names, in lower case; [] in a turn about anything else."""
    if not isinstance(turn.subject, ThreadTurn) or not turn.subject.is_owner:
        return []
    return [span.value.lower() for span in detect_mentions(turn.subject.notification.text)]


def serving_request(name: str, handler: Handler, words: ToolWords) -> Handler:
    """Return a handler that does the same, and notes in a turn about a post that what it asks for was tried, and done.

    Where the post asks for this act alone, the model is told in words what came of it.
    """

    async def noted(arguments: Any, turn: Turn) -> ToolResult:  # noqa: ANN401 - each handler takes its own input model
        subject = turn.subject
        if not isinstance(subject, ThreadTurn):
            return await handler(arguments, turn)
        subject.revisions.tried_request = True
        result = await handler(arguments, turn)
        if result.is_error or result.data.get("held"):
            return result
        values = {key: ", ".join(value) if isinstance(value, list) else value for key, value in arguments}
        told = words.act_done(name, **values)
        subject.revisions.told_done.append(told)
        return replace(result, content=told)

    return noted


def request_tool(words: ToolWords, name: str, model: type[BaseModel], handler: Handler) -> Tool:
    """Return a tool for the owner alone, offered also in a turn about a public post of theirs that asks for it."""
    served, fits = serving_request(name, handler, words), serves_request(name)
    return words.tool(name, model, "social", Provenance.OWNER, served, holdable=True, fits=fits)


def due_before_answer(turn: Turn) -> list[str]:
    """Return the tools one of which is to be called before a request of the owner's is answered; [] if none is.

    They are returned once in a turn: a model that answers again without them does not want to do it. Where there is one
    tool beyond doubt, the turn offered it alone.
    """
    if asks_no_act(turn) or not isinstance(turn.subject, ThreadTurn):
        return []
    text = turn.subject.notification.text
    needed = [] if act_to_do_first(text) else sorted(tools_for_request(text))
    return needed if needed and turn.subject.revisions.ask_to_act() else []


def announces_what_is_done(text: str, thread: ThreadTurn) -> bool:
    """Return whether `text` speaks of the act or the work that the owner asked for as if it were still to come."""
    revisions = thread.revisions
    done = bool(revisions.made or (revisions.told_done and act_to_do_first(thread.notification.text)))
    return done and contains_promise(text)


def without_announcements(text: str, turn: Turn) -> str:
    """Return `text` without the sentences that announce what is done, where the model wrote another one already.

    It stays whole where nothing else is in it.
    """
    thread = turn.subject
    if not isinstance(thread, ThreadTurn) or not thread.revisions.asked_for_better:
        return text
    kept = [one for one in _SENTENCES.split(text) if not announces_what_is_done(one, thread)]
    return " ".join(kept) or text


def asks_no_act(turn: Turn) -> bool:
    """Return whether a turn may end without words: it is about no post in which the owner alone asks for an act."""
    subject = turn.subject
    if not isinstance(subject, ThreadTurn) or not (subject.is_owner and is_by_owner(turn)):
        return True
    return subject.is_told_by_others or not is_request(subject.notification.text)


def may_stay_silent(turn: Turn) -> bool:
    """Return whether a turn may end in silence: it is about no post of the owner's."""
    return not (isinstance(turn.subject, ThreadTurn) and turn.subject.is_owner)


def may_look_up(actor: str, turn: Turn) -> bool:
    """Return whether `actor` may be looked up.

    A handle is looked up at an address that its holder owns: beside untrusted text, a made-up one could carry away
    what the turn has seen.
    """
    return is_by_owner(turn) or actor.startswith("did:plc:")


def data_of(act: Act, reason: str, published: Published) -> dict[str, Any]:
    """Return what the life reads of a result: see `Disposition`."""
    held = published.status == "held"
    return {"act": act, "reason": reason, "intent_id": published.intent_id or None, "held": held}
