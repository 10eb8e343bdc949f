"""Which acts wait for the owner's approval before they become public: none, those that address strangers, or all.

On GitHub, every repository counts as a stranger's that is not the SOUL's, the owner's or a workspace of the owner's
organisation, unless the host of a room asked for the work there. The news that a commitment was kept appears in its
room without delay, because those who read it were there when it was made; with `SOUL_APPROVAL=drafts` and
`SOUL_APPROVAL_ROOM=on` it waits. If everything waits, so does what the owner asked for without giving its words or
naming its target.
"""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Self

from common.settings import Approval, Settings
from modules.services.outbox.bodies import DirectMessageBody, ReplyBody
from modules.services.outbox.github_bodies import OnGitHub
from modules.services.outbox.rules.policy import addressee, is_ours, named_in, repository, who_is_told
from modules.services.outbox.rules.rules import TrustCircle
from modules.services.outbox.types import Intent, ProposedAction, Verdict

_NAME = "approval"


class ApprovalRule:
    """The owner's choice (`SOUL_APPROVAL`) as a rule of the outbox.

    What the owner asked for waits only if everything does and the SOUL chose a part of it (`own_words`).
    `in_room` says that `drafts` also holds what is said in a room.
    """

    def __init__(self, approval: Approval, circle: Callable[[], TrustCircle], *, in_room: bool = False) -> None:
        self._approval = approval
        self._circle = circle
        self._in_room = in_room

    @classmethod
    def of(cls, settings: Settings, circle: Callable[[], TrustCircle]) -> Self:
        """Return the rule for these settings."""
        return cls(settings.soul_approval, circle, in_room=settings.soul_approval_room)

    def __call__(self, _: sqlite3.Connection, action: ProposedAction, __: datetime) -> Sequence[Verdict]:
        return [judge(self._approval, action, self._circle(), in_room=self._in_room)]

    def at_departure(self, intent: Intent) -> Verdict:
        """Decide the same for an admitted intent, as the owner's choice may have changed since."""
        if self._approval == "off":
            return Verdict(_NAME)
        return judge(self._approval, intent, self._circle(), in_room=self._in_room)


def judge(approval: Approval, act: ProposedAction | Intent, circle: TrustCircle, *, in_room: bool = False) -> Verdict:
    """Return the verdict of the owner's choice on one act, proposed or admitted."""
    if approval == "off":
        return Verdict(_NAME)
    unseen = act.own_words and approval == "drafts"
    said_there = act.kind == "space_chat" and not (in_room and approval == "drafts")
    if why := _needs_none(act, circle, unseen=unseen, said_there=said_there):
        return Verdict(_NAME, reason=why)
    if approval == "drafts":
        why = f"{_lacking(act) if unseen else 'every public act needs approval'} (SOUL_APPROVAL=drafts)"
        return Verdict(_NAME, "hold", why, value=approval)
    if place := repository(act):
        return _on_github(approval, act, place, circle)
    strangers = [who for who in (who_is_told(act), *named_in(act.body.public_text)) if who and circle.is_stranger(who)]
    if strangers:
        whom = ", ".join(dict.fromkeys(strangers))
        return Verdict(_NAME, "hold", f"addressed to a stranger: {whom} (SOUL_APPROVAL=strangers)", value=approval)
    return Verdict(_NAME, reason="addressed to nobody but owner and peers", value=approval)


def _lacking(act: ProposedAction | Intent) -> str:
    """Return what the owner's order left out: the act's words, its target, or one of them."""
    if act.body.public_text or isinstance(act.body, OnGitHub):
        return "the order did not give its words" + (" and name its target" if act.target else "")
    return "the order did not name its target"


def _needs_none(act: ProposedAction | Intent, circle: TrustCircle, *, unseen: bool, said_there: bool) -> str:
    """Return why an act needs no approval, whatever the owner chose; "" if it may need it."""
    if act.by_owner and not unseen:
        return "the owner asked for it"
    if act.kind == "direct_message" and addressee(act) in circle.owner:
        return "said to the owner alone"
    if isinstance(act.body, ReplyBody | DirectMessageBody) and act.body.is_last_word:
        return "it confirms that somebody is forgotten, which needs no approval either"
    return "said in the room of its commitment" if said_there else ""


def _on_github(approval: Approval, act: ProposedAction | Intent, place: str, circle: TrustCircle) -> Verdict:
    if is_ours(place, circle):
        return Verdict(_NAME, reason="the repository is ours or the owner's", value=approval)
    if isinstance(act.body, OnGitHub) and act.body.host_request:
        return Verdict(_NAME, reason="the host of the room asked for it", value=approval)
    why = f"in a repository of somebody else: {place} (SOUL_APPROVAL=strangers)"
    return Verdict(_NAME, "hold", why, value=approval)
