"""Computes what our profile and our declaration must contain: the bot label, the operator's contact. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adapters.atproto.convert import BOT_LABEL
from adapters.atproto.types import Profile
from common.constants import PROFILE_BIO_MAX_BYTES
from common.settings import Settings
from common.text.graphemes import grapheme_len
from modules.services.voice_phrases import interpolate

PROFILE_BIO_MAX_GRAPHEMES = 256
AUTONOMY = "studio.voyager.account.autonomy"

_SELF_LABELS = "com.atproto.label.defs#selfLabels"
_MAX_LABELS = 10

MESSAGES = "chat.bsky.actor.declaration"
"""The record in which an account declares from whom it takes direct messages."""

Level = Literal["collaborative", "automated"]
"""The account's autonomy: with a person's approval for all public acts, or without."""


@dataclass(frozen=True, slots=True)
class Operator:
    """The person responsible for the account, as it states: handle, DID and, unless it is "", a contact.

    `former` is the contact that the account stated before, "" if it stated none: without a contact now, it goes.
    """

    handle: str
    did: str
    contact: str = ""
    level: Level = "automated"
    former: str = ""


def operator_of(settings: Settings) -> Operator:
    """Return the person responsible for the SOUL with these settings."""
    return Operator(
        handle=settings.owner_bluesky_social_handle,
        did=settings.owner_bluesky_social_handle_did,
        contact=" ".join(settings.operator_contact.split()),
        level="collaborative" if settings.soul_approval == "drafts" else "automated",
    )


@dataclass(frozen=True, slots=True)
class MessagePolicy:
    """From whom the account takes direct messages; `overrides` replaces a choice that is already declared."""

    incoming: Literal["following", "all"] = "following"
    overrides: bool = False


def message_policy_of(settings: Settings) -> MessagePolicy | None:
    """Return what the account is to declare with these settings; None for nothing."""
    if not settings.soul_direct_messages or settings.soul_message_declaration == "off":
        return None
    incoming: Literal["following", "all"] = "all" if settings.soul_messages_from == "all" else "following"
    return MessagePolicy(incoming, overrides=settings.soul_message_declaration == "always")


@dataclass(frozen=True, slots=True)
class MessageProblem:
    """The problem that keeps the owner's direct messages from reaching us, and the remedy."""

    message: str
    remedy: str


def message_problem(owner: Profile, settings: Settings) -> MessageProblem | None:
    """Return what is missing for the owner to command by direct message; None if nothing is, or they are off."""
    name = f"@{owner.handle}"
    if not settings.soul_direct_messages:
        return None
    if owner.barrier:
        how = f"Undo it in the app, for the SOUL and for {name}."
        return MessageProblem(f"No control by direct message: {name} and the SOUL mute or block one another", how)
    if owner.is_followed or settings.soul_messages_from == "all":
        return None
    how = f"Tell your SOUL: follow {name}. Or follow {name} in the app, logged in as the SOUL."
    return MessageProblem(f"No control by direct message: it takes none from {name}, whom it does not follow", how)


def declared(record: Mapping[str, Any], message_policy: MessagePolicy) -> dict[str, Any]:
    """Return the record of `MESSAGES` that says from whom we take messages, and that nobody adds us to groups.

    Other fields stay, and so does `allowIncoming` unless the policy overrides it.
    """
    said = {"allowIncoming": message_policy.incoming, "allowGroupInvites": "none"}
    if "allowIncoming" not in record:
        return {**said, **record}
    return {**record, "allowIncoming": message_policy.incoming} if message_policy.overrides else dict(record)


def autonomous(record: Mapping[str, Any], operator: Operator) -> dict[str, Any]:
    """Return the record of `AUTONOMY` that says what we are. Other fields stay."""
    stood = record.get("responsibleParty")
    party = {**(stood if isinstance(stood, dict) else {}), "name": f"@{operator.handle}", "did": operator.did}
    if operator.contact:
        party["contact"] = operator.contact
    elif operator.former and party.get("contact") == operator.former:
        del party["contact"]
    return {**record, "level": operator.level, "usesGenerativeAI": True, "responsibleParty": party}


def honest(
    profile: Mapping[str, Any], *, contact: str, line: str, former: str = ""
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a profile record that says what we are, and why it could not say all of it. Existing text stays.

    `line` is the line of the bio with the contact, with `{{contact}}` in it; the text before that identifies the line
    later. Without a contact the line with the `former` one goes.
    """
    labels, label_problem = _with_label(profile.get("labels"))
    stood = bio if isinstance(bio := profile.get("description"), str) else ""
    said, bio_problem = _with_contact(stood, contact, line, former)
    changed = {**profile, **({"labels": labels} if labels else {}), **({"description": said} if said != stood else {})}
    return changed, tuple(problem for problem in (label_problem, bio_problem) if problem)


def says_bot(profile: Mapping[str, Any]) -> bool:
    """Return whether a profile record has the label `bot`."""
    labels = profile.get("labels")
    return isinstance(labels, dict) and _has_bot(labels.get("values"))


def _has_bot(values: object) -> bool:
    given = values if isinstance(values, list) else []
    return any(isinstance(value, dict) and value.get("val") == BOT_LABEL for value in given)


def _with_label(labels: object) -> tuple[dict[str, Any] | None, str]:
    if labels is None:
        return {"$type": _SELF_LABELS, "values": [{"val": BOT_LABEL}]}, ""
    values = labels.get("values") if isinstance(labels, dict) else None
    if not isinstance(labels, dict) or not isinstance(values, list):
        return None, "The profile's labels are of an unknown kind: the label bot could not be put beside them"
    if _has_bot(values):
        return labels, ""
    if len(values) >= _MAX_LABELS:
        return labels, f"The profile has {len(values)} labels already: there is no room for the label bot"
    return {**labels, "values": [*values, {"val": BOT_LABEL}]}, ""


def _with_contact(bio: str, contact: str, line: str, former: str) -> tuple[str, str]:
    lines = bio.split("\n") if bio else []
    if not contact:
        stated = interpolate(line, {"contact": former}) if former else None
        return "\n".join(stands for stands in lines if stands != stated), ""
    begins = line.partition("{{contact}}")[0]
    ours = [number for number, stands in enumerate(lines) if stands.startswith(begins)]
    kept = [stands for number, stands in enumerate(lines) if number not in ours]
    kept.insert(ours[0] if ours else len(kept), interpolate(line, {"contact": contact}))
    changed = "\n".join(kept)
    if grapheme_len(changed) > PROFILE_BIO_MAX_GRAPHEMES or len(changed.encode()) > PROFILE_BIO_MAX_BYTES:
        return bio, "There is no room in the bio for OPERATOR_CONTACT; shorten the bio, or the contact"
    return changed, ""
