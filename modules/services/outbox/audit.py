"""The journal entries for each step of an intent."""

from dataclasses import asdict, replace

from adapters.atproto.records import web_url
from common.clock import local, parse_iso, span, spoken
from common.text.graphemes import shortened
from common.wording import LineKind, counted, deed
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import DeleteBody
from modules.services.outbox.github_bodies import OnGitHub
from modules.services.outbox.types import Admission, Intent, Verdict, Wait

PREVIEW_CHARS = 60
SHORT_ID_CHARS = 6

_FOR_PROPOSERS = {"instead", "retry_in_s", "body"}


def admission_entry(admission: Admission, what: str, number: int, timezone: str, older: Intent | None) -> Entry:
    """Return the entry of an intent that was admitted, held or refused; `data["rules"]` holds the rules' verdicts.

    `what` is the act in words, and `number` its draft number, for the owner's approval; `older` is the act that it
    replaced. Times are shown in `timezone`.
    """
    intent, verdicts = admission.intent, admission.verdicts
    match intent.state:
        case "blocked" if any(verdict.withhold for verdict in verdicts):
            entry = _entry(intent, "error", f"Blocked {deed(intent.kind)}: its words were not kept", intent.error or "")
        case "blocked":
            entry = _entry(intent, "warn", f"Blocked {_what(intent, PREVIEW_CHARS)}", intent.error or "")
        case "held":
            entry = held(intent, what, number)
            entry = replace(entry, summary=f"Changed. {entry.summary}") if older else entry
        case _:
            entry = _queued(intent, timezone, older)
    rules = [_told(verdict) for verdict in verdicts if verdict != Verdict(verdict.rule)]
    return replace(entry, data={**entry.data, "rules": rules}) if rules else entry


def held(intent: Intent, what: str, number: int = 0) -> Entry:
    """Return the entry of an intent that waits for approval; `what` is the act in words, `number` that of the draft."""
    named = number or intent.id[:SHORT_ID_CHARS]
    summary = f"Waits for your approval (/approve {named} or /reject {named}): {what}"
    return _entry(intent, "act", summary, intent.error or "")


def approved(intent: Intent) -> Entry:
    """Return the entry of an intent that the owner approved."""
    entry = _entry(intent, "done", f"Approved {_what(intent, PREVIEW_CHARS)}", "the owner approved it")
    return replace(entry, data={**entry.data, "approved": True})


def edited(intent: Intent, before: str, words: str) -> Entry:
    """Return the entry of an intent that the owner edited and so approved: the words `before`, and the new `words`."""
    summary = f"Edited and approved {_what(intent, PREVIEW_CHARS)}"
    entry = _entry(intent, "done", summary, "the owner gave its words", what="edited")
    return replace(entry, data={**entry.data, "before": before, "words": words})


def stopped(intent: Intent) -> Entry:
    """Return the entry of an intent that the owner rejected, or that was withdrawn before it was sent."""
    is_withdrawn = intent.outcome == "withdrawn"
    summary = f"{'Withdrew' if is_withdrawn else 'Rejected'} {_what(intent, PREVIEW_CHARS)}"
    return _entry(intent, "done", summary, intent.error or "", what="withdrawn" if is_withdrawn else "rejected")


def kept_in(intent: Intent, wait: Wait) -> Entry:
    """Return the entry of a due intent that a gate holds back; it says for how long, if that is known."""
    reason = f"{wait.reason}; it can leave in {span(wait.seconds)}" if wait.ends else wait.reason
    return _entry(intent, "queue", f"Waiting to send {_what(intent, PREVIEW_CHARS)}", reason, what="kept in")


def sending(intent: Intent) -> Entry:
    """Return the entry of an intent that is sent now."""
    again = intent.attempts + intent.deferrals > 0 or intent.state == "sending"
    return _entry(intent, "queue", f"Sending {_what(intent, PREVIEW_CHARS)}", "again" if again else "")


def done(intent: Intent, *, earlier: bool) -> Entry:
    """Return the entry of a delivered intent; `earlier` if an earlier try, whose answer was lost, delivered it."""
    where = intent.result_uri or ""
    words = intent.kind in {"post", "reply"} and intent.body.public_text
    line: LineKind = "said" if words else "social"
    return _entry(intent, line, f"Sent {_what(intent)}", f"{where} (an earlier try had arrived)" if earlier else where)


def put_off(intent: Intent, retry_in_s: float) -> Entry:
    """Return the entry of an intent that will be tried again, because a try failed or its outcome is unknown."""
    return _entry(intent, "warn", f"Retry of {_what(intent, PREVIEW_CHARS)} in {span(retry_in_s)}", intent.error or "")


def not_found(intent: Intent, again_in_s: float) -> Entry:
    """Return the entry of a try without an answer that was not found; it may still arrive, so a look follows."""
    summary = f"Looking again for {_what(intent, PREVIEW_CHARS)} in {again_in_s:.0f} s"
    return _entry(intent, "queue", summary, "it was not found, but it may still arrive")


def duplicates_closed(intent: Intent, count: int) -> Entry:
    """Return the entry of duplicates that late tries made, and that were closed."""
    summary = f"Closed {counted(count, 'duplicate')} of {_what(intent, PREVIEW_CHARS)}"
    return _entry(intent, "warn", summary, f"an earlier try arrived late; what counts is {intent.result_uri}")


def ended(intent: Intent) -> Entry:
    """Return the entry of an intent that failed permanently or expired."""
    verb = "Expired" if intent.state == "expired" else "Failed"
    line: LineKind = "warn" if intent.state == "expired" else "error"
    return _entry(intent, line, f"{verb}: {_what(intent, PREVIEW_CHARS)}", intent.error or "")


def _queued(intent: Intent, timezone: str, older: Intent | None) -> Entry:
    verb = "Queued" if older is None else "Moved" if older.body == intent.body else "Changed"
    summary = f"{verb} {_what(intent, PREVIEW_CHARS)}"
    reasons = (
        f"for {spoken(local(parse_iso(intent.scheduled_for), timezone))}" if intent.scheduled_for else "",
        "with priority" if intent.urgent else "",
    )
    return _entry(intent, "queue", summary, ", ".join(filter(None, reasons)))


def _what(intent: Intent, chars: int | None = None) -> str:
    words = " ".join(intent.body.short_preview.split())
    shown = shortened(words, chars) if chars else words
    if isinstance(intent.body, OnGitHub):
        return shown
    if isinstance(intent.body, DeleteBody) and intent.body.did:
        return intent.body.deed.replace(" ", ": ", 1)
    return f"{deed(intent.kind)}: {shown or web_url(intent.target) or intent.target}"


def _entry(intent: Intent, line: LineKind, summary: str, reason: str, *, what: str = "") -> Entry:
    cause = intent.cause_id or ""
    return Entry(
        kind="act",
        loop="outbox",
        summary=summary,
        line=line,
        reason=reason,
        trigger_uri=cause if cause.startswith("at://") else None,
        intent_id=intent.id,
        data={
            "kind": intent.kind,
            "target": intent.target,
            "cause": cause,
            "state": intent.state,
            "attempts": intent.attempts,
            "deferrals": intent.deferrals,
            **({"what": what} if what else {}),
        },
    )


def _told(verdict: Verdict) -> dict[str, object]:
    return {name: value for name, value in asdict(verdict).items() if name not in _FOR_PROPOSERS}
