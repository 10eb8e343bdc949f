"""Which tools a turn may use, which calls are repeats or wrong, and how a call fits the owner's newest line. Pure.

The provenance of the words in a turn decides. To look, only whoever asked for the turn must be trusted enough: a look
leaves nothing behind, and its answer reaches only them. To act, every word in the turn must be trusted enough, since
any of them may ask for it. If the owner asked and others' words came in, an act waits for the owner's approval, unless
their newest line gives all of it and a judge who reads that line finds that it asks for it.
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, Literal, get_args, get_origin

import regex
from pydantic import BaseModel, ValidationError

from adapters.atproto.records import parse_at_uri
from adapters.atproto.richtext import parse_bsky_post_url
from common.clock import spoken_ahead
from common.provenance import Provenance
from common.text.handles import UNSPACED, WORD
from common.text.strings import account_name, normalize_quotes
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import OwnAct, OwnerRequest, Tool, Turn

REPLY_TOOL = "bluesky_reply"
MIXED = "other people's words were read before it"
_SOCIAL = {"social", "self"}
_EMPTY: tuple[object, ...] = (None, "", [], {})
"""Values of an unknown field that mean "not given"."""


def allowed(tool: Tool, turn: Turn, *, social_only: bool) -> bool:
    """Return whether `tool` exists in `turn`: it applies to it, fits the mode, and the words are trusted enough."""
    if tool.subject is not None and not isinstance(turn.subject, tool.subject):
        return False
    if social_only and tool.capability not in _SOCIAL:
        return False
    trusted = turn.asked_by if tool.effect == "look" else turn.provenance
    may_be_named = tool.named_only and turn.asked_by is Provenance.OWNER and turn.request is not None
    if trusted < tool.needs and not may_be_named and not approval_reason(tool, turn):
        return False
    return tool.fits is None or tool.fits(turn)


def approval_reason(tool: Tool, turn: Turn) -> str:
    """Return why an act of `tool` in `turn` must wait for the owner's approval; "" if it need not, or cannot.

    This applies even to acts that a stranger's turn may do freely: that turn saw nothing private, this one may have.
    """
    mixed = turn.asked_by is Provenance.OWNER and turn.provenance < Provenance.OWNER
    return MIXED if tool.effect == "act" and tool.holdable and mixed else ""


def is_order_open(tool: Tool, turn: Turn) -> bool:
    """Return whether it is open if the owner's line asks for an act of `tool`, as the turn also holds others' words.

    These may have talked the model into the act, so a judge then reads the line alone.
    """
    is_owners = turn.asked_by is Provenance.OWNER and turn.request is not None and turn.provenance < Provenance.OWNER
    return is_owners and (tool.named_only or bool(approval_reason(tool, turn)))


def place_in_answer(tool: Tool, turn: Turn) -> int:
    """Return when a call is carried out among those of one answer: 0, or 1 if it answers, 2 if it only ends the turn.

    What ends the turn comes last, so that it keeps no other call from being carried out.
    """
    for place, kind in enumerate((tool.answers, tool.closes), 1):
        if kind is not None and isinstance(turn.subject, kind):
            return place
    return 0


def withheld_fields(tool: Tool, turn: Turn) -> frozenset[str]:
    """Return the fields that `tool` does not take in `turn`, because the owner did not ask for it."""
    return frozenset() if turn.asked_by is Provenance.OWNER else tool.owner_fields


def hidden_fields(tool: Tool, turn: Turn) -> frozenset[str]:
    """Return the fields of `tool` that the model is not shown: those withheld, and those that the subject sets."""
    given = tool.given.get(type(turn.subject), frozenset())
    return withheld_fields(tool, turn) | (given - tool.named_fields if turn.asked_by is Provenance.OWNER else given)


def lower_provenance(turn: Turn, words: Provenance | None) -> Turn:
    """Return `turn` with its provenance lowered to `words`, if that is lower; None stands for the SOUL's own words."""
    if words is None or words >= turn.provenance:
        return turn
    return replace(turn, provenance=words, origin=turn.asked_by)


def replied_uri(call: ToolCall) -> str | None:
    """Return the URI of the post that `call` replies to; None if it is not a reply."""
    uri = call.input.get("post_uri")
    return uri if call.name == REPLY_TOOL and isinstance(uri, str) and uri else None


def deduplicate_reply_tool_calls(
    calls: Iterable[ToolCall], replied_uris: Collection[str]
) -> tuple[list[ToolCall], list[ToolCall]]:
    """Split `calls` into `(kept, skipped)`: skip replies to a post in `replied_uris` or of an earlier call."""
    seen = set(replied_uris)
    kept: list[ToolCall] = []
    skipped: list[ToolCall] = []
    for call in calls:
        uri = replied_uri(call)
        (skipped if uri in seen else kept).append(call)
        if uri is not None:
            seen.add(uri)
    return kept, skipped


def without_empty_options(model: type[BaseModel], sent: dict[str, Any]) -> dict[str, Any]:
    """Return what the model sent without nulls, by which small models say "not given", and empty unknown fields."""
    fields = model.model_fields
    return {
        name: value
        for name, value in sent.items()
        if (value is not None or fields[name].is_required() if name in fields else value not in _EMPTY)
    }


def left_out(arguments: BaseModel, sent: Mapping[str, Any]) -> str:
    """Return the ignored fields of a call: unknown ones, and invalid choices with what is allowed; "" for none."""
    fields = type(arguments).model_fields
    choices = (
        f"`{name}` (allowed: {', '.join(filter(None, get_args(field.annotation)))})"
        for name, field in fields.items()
        if get_origin(field.annotation) is Literal and sent.get(name) and not getattr(arguments, name)
    )
    known = {*fields, *(field.alias for field in fields.values())}
    unknown = (f"`{name}`" for name, value in sent.items() if name not in known and value not in _EMPTY)
    return ", ".join((*choices, *unknown))


def explain(tool: Tool, turn: Turn, error: ValidationError) -> tuple[str, str]:
    """Return what is wrong with each field, and which fields the tool takes in `turn`."""
    problems = "; ".join(
        f"`{'.'.join(map(str, item['loc'])) or 'input'}`: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors(include_url=False, include_context=False)
    )
    return problems, taken_fields(tool, turn)


def taken_fields(tool: Tool, turn: Turn) -> str:
    """Return the names of the fields that `tool` takes in `turn`, as text for the model."""
    hidden, told = hidden_fields(tool, turn), tool.input_model.model_json_schema().get("properties", {})
    fields = (
        (field.alias or name, field) for name, field in tool.input_model.model_fields.items() if name not in hidden
    )
    shown = ((name, field) for name, field in fields if name in told)
    taken = (name if field.is_required() else f"{name} (optional)" for name, field in shown)
    return ", ".join(taken) or "nothing"


_LETTER = rf"[^\W{UNSPACED}]"
_BEFORE = rf"(?<!{_LETTER})(?<!{_LETTER}[-.@])(?<!(?:[-\u2212.]|[0-9][,:/])(?=[0-9]))"
_BEHIND = rf"(?![-.@]?{_LETTER})(?!'(?!s\b){_LETTER})(?<![0-9](?=[,:/][0-9]))"
_NUMBER = regex.compile(r"S?[0-9T:.+Z-]{1,32}")
"""A number, the name of a schedule or a time: too narrow to carry a message."""

_ADDRESS = regex.compile(r"(https?://)([^\s/?#]+)(\S*)", regex.IGNORECASE)
_BEHIND_ADDRESS = rf"/?(?![-./?#&=%:~+@]*{_LETTER})"
_POST = regex.compile(r"(?:at://|bsky\.app/profile/)([^\s/]+)/(?:post|app\.bsky\.feed\.post)/", regex.IGNORECASE)
_MARKER = regex.compile(r"^\s*[-*+](?:\s+\[ \])?\s+|[.,;]$")
"""The marker before a list item and the punctuation after it, which the model adds to what the owner listed."""
_WHOLE_LINE = "the whole line"
_EDITED_WORDS = 400
_END = ".,;:!?"
"""Punctuation at the end of a word that does not count where two texts of the SOUL's own are compared."""
_EXACT = regex.compile(r"[0-9/@]")
"""What a word has whose letters' case counts: it may be an address."""
_AROUND = "\"'\u00ab\u00bb()[]<>" + _END


def is_said(text: str, line: str) -> bool:
    """Return whether `line` holds `text` as whole words, ignoring case and the kind of quotation marks.

    In scripts without spaces, `text` may begin and end anywhere. A full stop at its end is ignored.
    """
    words = _plain(text).removesuffix(".")
    return bool(words) and regex.search(rf"{_BEFORE}{regex.escape(words)}{_BEHIND}", _plain(line)) is not None


def in_owner_words(request: OwnerRequest, arguments: BaseModel, tool: Tool, own: OwnAct | None = None) -> BaseModel:
    """Return the call with the owner's whole line in each text of `tool.from_line` that has other words than theirs.

    Numbers and times stay. Other values in such a field, such as a list, are reset to its default. With `own`, an act
    of the SOUL's own that the call changes, its texts stay, also with words of the line put into them, and other texts
    are reset.
    """
    instead: dict[str, object] = {}
    for name in tool.from_line:
        value = getattr(arguments, name)
        is_text = isinstance(value, str)
        if not value or (is_text and _is_theirs(value, request.text, own)):
            continue
        field = type(arguments).model_fields[name]
        instead[name] = request.text if is_text and not own else field.get_default(call_default_factory=True)
    return arguments.model_copy(update=instead)


def shown_call(
    request: OwnerRequest, arguments: BaseModel, now: datetime, own: OwnAct | None = None
) -> tuple[str, str]:
    """Return the arguments of a call in the words of the owner's line, and ""; or "" and the first field not in it.

    The line gives an account by its handle, a post by its address or its author, an address with or without its scheme,
    and all else word for word, or line by line as a list. The text of `own`, the SOUL's own act that the call is done
    to, counts like the line; with words of the line put into it, it is shown as in `edited`. Numbers and choices are
    shown as they are, and times as people say them at the local time `now`. Each field that was set is shown, even with
    its default or empty. Without `own`, choices are always shown, and so is the note beside the type of a text that was
    not set; with `own`, the act keeps its own values.
    """
    told = [own.told] if own else []
    for name, field in type(arguments).model_fields.items():
        value, choices = getattr(arguments, name), {*_choices(field.annotation, *field.metadata)}
        is_chosen = not own and (isinstance(value, bool) or bool(choices and value))
        unset = next((one for one in field.metadata if isinstance(one, str) and not own), "")
        if not (field.is_required() or is_chosen or unset or name in arguments.model_fields_set):
            continue
        leaves = [*_leaves(value)]
        if not leaves and not own:
            told.append(f"{name}: {unset or 'empty'}")
        for one in leaves:
            is_safe = one in choices or not isinstance(one, str)
            words = str(one) if is_safe else _given(one.strip(), request, now, own)
            if not words:
                return "", name
            told.append(f"{name}: {words}")
    return "; ".join(told), ""


def _is_theirs(text: str, line: str, own: OwnAct | None) -> bool:
    is_own = own is not None and bool(_is_own(text, own) or edited(text, line, own.words))
    return is_own or is_worded(text, line) or _NUMBER.fullmatch(text) is not None


def _is_own(text: str, own: OwnAct) -> bool:
    """Return whether a text is that of an act of the SOUL's own, or is said about one that has no text."""
    return _plain(text) == _plain(own.words) if own.words else is_worded(text, own.told)


def post_addresses(request: OwnerRequest, uri: str) -> list[str]:
    """Return the addresses by which a line can give the post `uri`; [] if that is none."""
    if (post := parse_at_uri(uri)) is None:
        return []
    linked = [handle for handle, did in request.linked.items() if did == post.repo]
    names = [post.repo, *request.names_of(post.repo), *linked]
    return [uri, *(f"bsky.app/profile/{name.removeprefix('@')}/post/{post.rkey}" for name in names)]


def is_post_given(request: OwnerRequest, did: str) -> bool:
    """Return whether a line gives the address of a post of the account `did`: then it means no other post of it."""
    whose = (found[1].lower() for found in _POST.finditer(request.text))
    return any(did in {one, request.linked.get(one), request.account_of(one)} for one in whose)


def _choices(*kinds: object) -> Iterator[object]:
    """Yield the values that types list, and those in sets beside a type, which allow other values, too."""
    for one in kinds:
        if isinstance(one, frozenset):
            yield from one
        yield from get_args(one) if get_origin(one) is Literal else _choices(*get_args(one))


def _leaves(value: Any) -> Iterator[Any]:  # noqa: ANN401 - an argument may be anything
    """Yield the single values in an argument, except empty ones."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set):
        for one in value:
            yield from _leaves(one)
    elif value not in {None, ""}:
        yield value


def _given(text: str, request: OwnerRequest, now: datetime, own: OwnAct | None) -> str:
    """Return a text as the owner's line gives it, or a number or time as it is; else "". An edit has its marks."""
    if text == request.text.strip() or _NUMBER.fullmatch(text):
        return _moment(text, now) if _NUMBER.fullmatch(text) else _WHOLE_LINE
    if account := _account(_MARKER.sub("", text), request):
        return account
    if own and (parse_at_uri(text) or parse_bsky_post_url(text)):
        return "the same"
    if parse_at_uri(text):
        return _post(text, request)
    says = _gives_address if _ADDRESS.fullmatch(text) else is_worded
    is_given = says(text, request.text) or (own is not None and _is_own(text, own))
    if words := text if is_given else edited(text, request.text, own.words if own else ""):
        return words
    items = _unnumbered([one.strip() for one in text.splitlines() if one.strip()])
    given = [_given(one, request, now, own) for one in items if items != [text]]
    return "; ".join(given) if all(given) else ""


def _post(uri: str, request: OwnerRequest) -> str:
    """Return the address by which the line gives a post, or else the names by which it gives its author; else ""."""
    if found := next((one for one in post_addresses(request, uri) if is_said(one, request.text)), ""):
        return found
    post = parse_at_uri(uri)
    names = [] if post is None or is_post_given(request, post.repo) else request.names_of(post.repo)
    return f"a post of {' = '.join(names)}" if names else ""


def _unnumbered(items: list[str]) -> list[str]:
    """Return the items of a list without their numbers, if these count from 1."""
    numbers = [f"{place}{sign} " for place, _ in enumerate(items, 1) for sign in ".)"]
    if len(items) < 2 or not all(one.startswith(tuple(numbers)) for one in items):  # noqa: PLR2004 - one is no list
        return items
    return [one.partition(" ")[2].strip() for one in items]


def _gives_address(text: str, line: str) -> bool:
    """Return whether a line holds a whole address, exact after its host, with the same scheme or without one."""
    scheme, host, rest = map(regex.escape, _ADDRESS.split(text.rstrip("/"))[1:4])
    whole = rf"(?:(?i:{scheme})|(?<![\w/@.-]))(?i:{host}){rest}{_BEHIND_ADDRESS}"
    return regex.search(whole, line) is not None


def _account(text: str, request: OwnerRequest) -> str:
    """Return the name by which the line gives the account with this DID or handle; "" if it does not."""
    if text.startswith("did:"):
        names = request.names_of(text) or ([text] if is_said(text, request.text) else [])
        return " = ".join(names)
    handle = account_name(text).lower()
    known = {name.removeprefix("@").lower() for name, did in (*request.named.items(), *request.mentions) if did}
    return handle if handle in known else ""


def is_worded(text: str, line: str) -> bool:
    """Return whether `line` holds `text` with its addresses, ignoring a list marker before and punctuation after it."""
    there, words = ([word.strip(_AROUND) for word in normalize_quotes(one).split()] for one in (line, text))
    return {one for one in words if "/" in one} <= {*there} and is_said(_MARKER.sub("", text.strip()), line)


def edited(text: str, line: str, own: str, *, may_swap: bool = False) -> str:
    """Return `text` with its differences from `own` marked, as `in [-May-] {+June+}`; "" if it is no edit of that.

    In an edit, words of `line` are put in, no more than stay, and words that it names are left out. With `may_swap`, a
    word put in may take the place of any other.
    """
    new, old = (list(WORD.finditer(one)) for one in (text, own))
    if not new or not old or max(len(new), len(old)) > _EDITED_WORDS:
        return ""
    before, after = ([_key(word[0]) for word in one] for one in (old, new))
    marked, put_in, is_given = list[str](), 0, True
    for tag, begin, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone = own[old[begin].start() : old[end - 1].end()] if begin < end else ""
        there = text[new[first].start() : new[last - 1].end()] if first < last else ""
        if tag == "equal":
            marked.append(there)
            continue
        put_in += _counted(after[first:last])
        marked += [f"[-{gone}-]"] if gone else []
        marked += [f"{{+{there}+}}"] if there else []
        is_swap = may_swap and end - begin <= last - first
        named = [there, "" if is_swap else gone]
        is_given = is_given and all(is_worded(one.rstrip(_END), line) for one in named if one)
    is_edit = is_given and before != after and 2 * put_in <= _counted(after)
    return " ".join(marked) if is_edit else ""


def _counted(words: Sequence[str]) -> int:
    """Return how many words have a letter or a digit."""
    return sum(any(map(str.isalnum, word)) for word in words)


def _key(word: str) -> str:
    """Return a word in the form in which two texts of the SOUL's own are compared."""
    return (word if _EXACT.search(word) else _plain(word)).rstrip(_END)


def _moment(text: str, now: datetime) -> str:
    """Return a date and time as people say it, with how far ahead it is; return any other text unchanged."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return spoken_ahead(moment.astimezone(now.tzinfo) if moment.tzinfo else moment.replace(tzinfo=now.tzinfo), now)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", normalize_quotes(text)).casefold().split())
