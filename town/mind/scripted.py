"""The mind that ships with the town: small, scripted, no language model, and the same answer to the same request.

It reads the facts of a request and its tools, never a message: one row of `TABLE` for each kind of turn, which
is all that a new kind of turn needs. It uses only these and the phrase files beside it, and remembers nothing.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from common.clock import parse_iso
from common.facts import (
    CodingFacts,
    ExpressionFacts,
    IssueFacts,
    MemoryFacts,
    MessageFacts,
    OwnerFacts,
    OwnTimeFacts,
    PostFacts,
    QuestionFacts,
    ReadingFacts,
    ReflectionFacts,
    ReviewFacts,
    RoomFacts,
    ToolOutcome,
)
from common.text.graphemes import grapheme_len, leading_sentences
from town.mind.questions import answer_question, buildable, refused, right_in, shared_work, told, write_code
from town.mind.replies import TOOLS, MindTurn, ToolChoice, answer_freely, choose, reply
from town.mind.room import reflect, take_part
from town.mind.words import ANY, MAX_GRAPHEMES, SENTENCE_END, BankWords, Idea, fit, is_sentence, load_bank, lower_first
from town.model.types import ChatRequest, Completion, Json, ToolUse

_OWN_LINE = 0.35
_INVITES = 0.35
_SEARCHES = 3
_STANDS_BY_IT = 0.8
_NEIGHBOUR_EVERY = 3
_TITLE_CHARS = 60
_FORMS: Mapping[str, int] = {"note": 3, "idea": 4, "idea and question": 3, "question and answer": 2}
"""How often a post takes each form. A good post may end without a question."""
_STATEMENTS = {"values", "patterns", "learnings"}
_LISTS = {"explorations", "currentFocus"}


def express(turn: MindTurn, about: ExpressionFacts) -> Completion:
    """Return a post; in a field with a slip, its text is passed wrongly first, as a list, and correctly after that."""
    slip = turn.words().field.slip
    if about.picture or slip is None or slip.tool not in turn.offers or slip.page.strip() in turn.facts.own_skills:
        return _express(turn, about)
    first, *later = turn.facts.outcomes or (None,)
    completion = _express(replace(turn, facts=replace(turn.facts, outcomes=tuple(later))), about)
    if first is not None or not completion.calls:
        return completion
    (call,) = completion.calls
    return Completion(calls=(replace(call, input={**call.input, "text": SENTENCE_END.split(call.input["text"])}),))


def _express(turn: MindTurn, about: ExpressionFacts) -> Completion:
    """Return a post; a second try has other words."""
    tried, last = turn.tried, turn.last
    offered = ("bluesky_post_found", "bluesky_post")
    tool = next((name for name in offered if name in turn.offers), "")
    words = turn.words(text=" ".join(about.lines), earlier=(*about.recent, *(() if last and last.draft else tried)))
    if not tool:
        return turn.anything(words)
    if last and not last.failed:
        return Completion(came_to(words, last))
    if about.picture:
        text = post_with_picture(words, about.picture)
    elif last is None:
        text = post(words, about)
    else:
        text = revised(words, last.draft) if last.draft else post_of_two(words, about)
    return turn.call(tool, {"text": text})


def look_up(turn: MindTurn, about: ReadingFacts) -> Completion:
    """Search for a word of a question, for a shorter one if that finds nothing; then report the nearest idea."""
    queries = sorted(_WORD.findall(about.question), key=len, reverse=True)[:_SEARCHES]
    searches, has_searched = divmod(len(turn.facts.outcomes), 2)
    if not has_searched and searches < len(queries) and turn.may("bluesky_search"):
        return turn.call("bluesky_search", {"query": queries[searches]})
    near = turn.words(text=about.question).match(about.question, turn.bank.fields.values())
    return turn.call("reading_done", {"finding": near.say if near and has_searched else ""})


def came_to(words: BankWords, last: ToolOutcome) -> str:
    """Return a line on the result of the last call: it failed, waits for approval, leaves later, or is done."""
    leaves = last.tool.startswith(("bluesky_", "github_"))
    return words.line("owner", "failed" if last.failed else "held" if last.held else "queued" if leaves else "done")


def post_with_picture(words: BankWords, title: str) -> str:
    """Return the text of a post with a picture: short, because the picture's source stands below it."""
    shown: Mapping[str, Sequence[str]] = words.bank.lines["shown"]
    phrase = words.pick([*shown.get(words.field.name, ()), *shown[ANY]])
    return f"{words.fill(phrase, title=title[:_TITLE_CHARS])} {words.line('invite', 'picture')}"


def post(words: BankWords, about: ExpressionFacts) -> str:
    """Return the text of one post."""
    neighbour = _neighbour_due(words, about)
    if not neighbour and words.rng.random() < _OWN_LINE and (own := _from_self(words, about)):
        return fit(own)
    idea, turned = words.next_page()
    if neighbour and turned:
        return fit(f"{idea.ask} {idea.answers[ANY]} {words.line('back_to', handle=neighbour)}")
    if neighbour:
        return fit(f"{idea.say} {_asked_of(words, idea, neighbour)}")
    notes = [note for note in words.field.notes if words.fresh(note)]
    texts = {
        "note": words.pick(notes) if notes else idea.say,
        "idea": idea.say,
        "idea and question": f"{idea.say} {idea.ask}",
        "question and answer": f"{idea.ask} {idea.answers[ANY]}",
    }
    return fit(texts[words.rng.choices(list(_FORMS), list(_FORMS.values()))[0]])


def post_of_two(words: BankWords, about: ExpressionFacts) -> str:
    """Return two ideas side by side, for when the first text was said before: the pairs last for days."""
    first, second = words.rng.sample([idea for field in words.own_fields for idea in field.ideas], 2)
    if neighbour := _neighbour_due(words, about):
        return fit(f"{first.say} {_asked_of(words, second, neighbour)}")
    return fit(_inviting(words, f"{first.say} {words.rng.choice([second.say, second.ask])}", "pair"))


def revised(words: BankWords, draft: str) -> str:
    """Return a draft that was sent back: unchanged, or with an opening for readers."""
    if words.rng.random() < _STANDS_BY_IT:
        return draft
    near = words.match(draft, [words.field]) or words.next_idea()
    whole = f"{draft} {words.line('widen') if '?' in draft else near.ask}"
    return whole if grapheme_len(whole) <= MAX_GRAPHEMES else fit(draft)


def _from_self(words: BankWords, about: ExpressionFacts) -> str:
    """Return the lines of SELF.md that the post is about, as a post; "" if they do not read as one."""
    lines = [line for line in about.lines if words.fresh(line) and is_sentence(line)]
    if not lines:
        return ""
    if "+" in about.source:
        return _inviting(words, f"{lines[0]} {lines[1]}", "pair") if len(lines) > 1 else ""
    if lines[0].endswith("?"):
        return _inviting(words, lines[0], "question")
    if about.source in _STATEMENTS:
        return _inviting(words, lines[0], "statement")
    if about.source in _LISTS:
        return _inviting(words, f"{words.line('list_lead')} {lower_first(lines[0])}", "list")
    return ""


def _inviting(words: BankWords, text: str, kind: str) -> str:
    """Return the text, sometimes with a question to its readers after it."""
    return f"{text} {words.line('invite', kind)}" if words.rng.random() < _INVITES else text


def _neighbour_due(words: BankWords, about: ExpressionFacts) -> str:
    """Return a neighbour to address: one that the post is about, or any if none of our latest posts addressed one."""
    neighbours = words.neighbours
    named = [handle for handle in neighbours for line in about.lines if handle in line]
    if named:
        return named[0]
    latest = about.recent[: _NEIGHBOUR_EVERY - 1]
    lately = any(f"@{handle}" in line for handle in neighbours for line in latest)
    return "" if lately or not neighbours else words.rng.choice(sorted(neighbours))


def _asked_of(words: BankWords, idea: Idea, handle: str) -> str:
    forms: list[str] = words.bank.lines["address"]
    plain = [form for form in forms if ":" not in idea.ask or ":" not in form]
    return words.fill(words.pick(plain), handle=handle, ask=lower_first(idea.ask), Ask=idea.ask)


_POST_THIS = re.compile(
    r"^(?:please |could you |can you )*(?:post|publish|share|say)\b(?: this| that)?[:,]?\s*(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_MENTION = re.compile(r"@[A-Za-z0-9-]{1,40}")
_WORD = re.compile(r"\w{1,40}")
_ANSWER_CHARS = 80
_VAGUE = re.compile(r"^(?:something|anything|a (?:post|thought)|what|your|about)\b|^$", re.IGNORECASE)
_TOMORROW = re.compile(r"\btomorrow\b(?: morning)? at (\d{1,2})\b:?\s*", re.IGNORECASE)
_CALL_ME = re.compile(r"\b(?:call me|my name is|i am|i'm) ((?-i:[A-Z])[\w-]*|(?<=call me )[\w-]+)", re.IGNORECASE)
_END_OF_FIRST_TALK, _NAME_WORDS = "complete_commissioning", 2
_STATUS = re.compile(
    r"\b(status|how (?:do )?things stand|how (?:are|is) (?:you|it|things)|what'?s up|report)\b", re.IGNORECASE
)


def answer_post(turn: MindTurn, about: PostFacts) -> Completion:
    """Do one act about a post: shared work, a request about its author's data, a reply, a like, leaving or silence."""
    if work := shared_work(turn, about.text):
        return work
    if turn.may("data_request") and right_in(about.text) != "none":
        return turn.call("data_request", {"reason": "they ask about their own data"})
    return _meet(turn, about)


def _meet(turn: MindTurn, about: PostFacts) -> Completion:
    thread = tuple(line.text for line in about.thread)
    words = turn.words(text=about.text, earlier=(*thread, about.text, *turn.tried))
    if result := told(turn, words, about.account, is_order=about.is_owner):
        return result
    choice = choose(about, turn.facts.agent.handle, turn.bank, turn.rng)
    if (last := turn.last) and last.failed and last.act == "silent":
        choice = ToolChoice("silent")
    act = next((act for act in (choice.act, *TOOLS) if turn.may(TOOLS[act])), None)
    if act is None:
        return turn.anything(words)
    known: Json = {"post_uri": about.uri, "post_cid": about.cid, "uri": about.uri, "cid": about.cid}
    if act == "reply":
        is_first = all(line.who for line in about.thread)
        known["text"] = reply(words, choice, is_first=is_first, pictures=about.pictures)
        if about.ritual:
            known["text"] = fit(f"{words.line('ritual_part', about.part)} {known['text']}")
        if about.account:
            known["text"] = fit(f"{words.line('account', username=about.account)} {known['text']}")
    elif choice.intent and choice.intent.act == act and choice.intent.say:
        known["reason"] = words.say(choice.intent.say)
    else:
        known["reason"] = words.line("reasons", act)
    if act == "reply" and about.offered and turn.may("bluesky_reply_picture"):
        shown = words.line("shows", title=about.offered[:_TITLE_CHARS])
        return turn.call(
            "bluesky_reply_picture", {"text": f"{leading_sentences(known['text'], _ANSWER_CHARS)} {shown}"}
        )
    return turn.call(TOOLS[act], known | {"closing_type": "like"})


def answer_message(turn: MindTurn, about: MessageFacts) -> Completion:
    """Answer a direct message, or pass on a data request; stay silent to a bot, and after an answer was sent back."""
    if turn.may("data_request") and right_in(about.text) != "none":
        return turn.call("data_request", {"reason": "they ask about their own data"})
    said = tuple(line.text for line in about.said)
    words = turn.words(text=about.text, earlier=(*said, about.text, *turn.tried))
    if turn.may("message_silence") and (about.is_bot or turn.last):
        return turn.call("message_silence", {"reason": words.line("reasons", "silent")})
    if not turn.may("message_answer"):
        return turn.anything(words)
    replying = (one for one in turn.bank.intents if one.act == "reply" and one.match.search(about.text))
    intent = next(replying, None)
    return turn.call("message_answer", {"text": fit(words.say(intent.say) if intent else answer_freely(words))})


def answer_issue(turn: MindTurn, about: IssueFacts) -> Completion:
    """Comment on what was said last in a thread on GitHub.

    Stay silent if a comment was sent back, or if nothing is asked and nobody names us.
    """
    others = [line.text for line in about.said if line.who]
    text = others[-1] if others else f"{about.title} {about.text}"
    words = turn.words(text=_MENTION.sub("", text), earlier=(*(line.text for line in about.said), *turn.tried))
    is_asked = about.is_owner_request or "?" in text or f"@{turn.facts.agent.name}" in text
    if turn.may("github_stay_silent") and (turn.last or not is_asked):
        return turn.call("github_stay_silent", {"reason": words.line("reasons", "silent")})
    if turn.may("github_submit_review"):
        return turn.call("github_submit_review", {"body": answer_freely(words)})
    if not turn.may("github_create_issue_comment"):
        return turn.anything(words)
    return turn.call("github_create_issue_comment", {"body": answer_freely(words)})


def answer_owner(turn: MindTurn, about: OwnerFacts) -> Completion:
    """Answer the owner, or do what the owner asked for, such as a post or a workspace."""
    words = turn.words(text=about.line, earlier=(*turn.tried, about.line), situation=about.situation)
    if act := _act_for_owner(turn, about, words):
        return act
    if turn.last and not (about.first and turn.last.tool == _END_OF_FIRST_TALK):
        return Completion(came_to(words, turn.last))
    if turn.force:
        return turn.anything(words)
    if about.first:
        return _first_talk(turn, about, words)
    return Completion(_say_to_owner(turn, about, words))


def _say_to_owner(turn: MindTurn, about: OwnerFacts, words: BankWords) -> str:
    """Return the answer to a line that no tool answers: a refusal, the status, or talk."""
    if cannot := refused(words, about.line, is_order=True):
        return cannot
    if about.situation and _STATUS.search(about.line):
        return words.line("owner", "status")
    intent = turn.bank.intent_of(about.line)
    if intent and intent.act == "reply":
        return words.say(intent.say)
    return (
        words.line("cannot")
        if intent and intent.name == "like_it"
        else answer_freely(words, {ANY: turn.bank.lines["owner"]["plain"]})
    )


def _act_for_owner(turn: MindTurn, about: OwnerFacts, words: BankWords) -> Completion | None:
    """Return the call that does what the owner asks for, if there is a tool for it."""
    if not (turn.last or turn.force) and "bluesky_post" in turn.offers and (asked := _POST_THIS.match(about.line)):
        later = _TOMORROW.search(asked[1]) if turn.facts.at else None
        text = (_TOMORROW.sub("", asked[1]) if later else asked[1]).strip().strip("\"“”'")
        given = post(words, ExpressionFacts()) if _VAGUE.match(text) else fit(text)
        if later:
            day = parse_iso(turn.facts.at) + timedelta(days=1)
            return turn.call("bluesky_post", {"text": given, "at": f"{day:%Y-%m-%d}T{int(later[1]):02}:00"})
        return turn.call("bluesky_post", {"text": given})
    if work := shared_work(turn, about.line):
        return work
    return _call_owner(turn, about)


def _call_owner(turn: MindTurn, about: OwnerFacts) -> Completion | None:
    """Record what the owner wants to be called; in the first talk this comes with the rest."""
    called = _CALL_ME.search(about.line)
    if called is None or about.first or (turn.last and turn.last.tool != "more_tools"):
        return None
    if "profile_update" in turn.offers:
        given = {"subject": "user", "field": "name", "value": called[1], "evidence": about.line}
        return turn.call("profile_update", given)
    return turn.call("more_tools", {"family": "self"}) if "more_tools" in turn.offers and turn.last is None else None


def _first_talk(turn: MindTurn, about: OwnerFacts, words: BankWords) -> Completion:
    """Greet, then ask for what is not known yet: a name for the owner, and what the agent is for."""
    if not about.line:
        return Completion(words.line("first", "greeting"))
    if turn.last:
        return Completion(words.line("first", "known") if not turn.last.failed else words.line("owner", "failed"))
    lines = [one.text for one in about.said if one.who and "?" not in one.text and not _POST_THIS.match(one.text)]
    named = [found[1] for line in lines if (found := _CALL_ME.search(line))]
    name = next(iter(named), next((line.strip(" .!") for line in lines if len(line.split()) <= _NAME_WORDS), ""))
    rest = (_CALL_ME.sub("", line).strip(" ,.;") for line in lines)
    purpose = next((line for line in rest if len(line.split()) > _NAME_WORDS), "")
    if name and purpose and len(lines) > 1 and turn.may(_END_OF_FIRST_TALK):
        return turn.call(_END_OF_FIRST_TALK, {"user_name": name, "role": purpose})
    if name and purpose:
        return Completion(words.line("first", "check", who=name, purpose=purpose))
    asked = words.line("first", "purpose" if name else "name")
    return Completion(f"{words.line('first', 'called', who=name)} {asked}" if name else asked)


_MOST_NAMED = 4


def keep_own_time(turn: MindTurn, about: OwnTimeFacts) -> Completion:  # noqa: ARG001 - the signature of the table
    """Answer that there is nothing to do: a scripted mind can do nothing on a schedule."""
    return Completion(f"Nothing to do about “{about.what[:_TITLE_CHARS]}” that I could see.")


def review(turn: MindTurn, about: ReviewFacts) -> Completion:
    """Return the call that submits a review; it requests changes if tests fail or are weakened."""
    offer = turn.first_offer
    if offer is None:
        return turn.anything(turn.words(text=about.title))
    words = turn.words(text=about.title)
    blanks = {
        "files": _listed(about.files),
        "file": _most_telling(about.files),
        "command": about.commands[0] if about.commands else "",
        "failing": _quoted(about.failing) or "what tests it",
        "weakened": _listed(about.weakened),
    }
    said = [words.line("reviews", about.tests, **blanks)]
    said += [words.line("reviews", "weakened", **blanks)] if about.weakened else []
    against = about.tests == "failed" or bool(about.weakened)
    event = "REQUEST_CHANGES" if against else ("COMMENT" if about.tests == "unrun" else "APPROVE")
    return turn.call(offer.name, {"event": event, "body": "\n\n".join(said)})


def _most_telling(files: Sequence[str]) -> str:
    """Return the file that a reader opens first: code before settings, and those before tests."""
    rank = {True: 1, False: 0}
    return min(files, key=lambda path: (rank["test" in path], path.endswith((".json", ".yml", ".toml"))), default="it")


def _listed(files: Sequence[str]) -> str:
    """Return the names of files as a list in a sentence."""
    names = [f"`{path}`" for path in files[:_MOST_NAMED]]
    if len(files) > _MOST_NAMED:
        names.append(f"{len(files) - _MOST_NAMED} more")
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or "it"


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(f'"{name}"' for name in names[:2])


_LIKES = re.compile(r"\b(?:i|we) (?:really )?(?:like|love|prefer|want|hate)\b", re.IGNORECASE)
_ABOUT = re.compile(r"\b(?:i am|i'm|my|we are|we're|i live|i work)\b", re.IGNORECASE)
_MOST = 3
_SUBJECT_WORDS = 5
_QUOTED_CHARS = 160


def remember(turn: MindTurn, about: MemoryFacts) -> Completion:
    """Return the call of the tool that stores memories."""
    offer = turn.first_offer
    if offer is None:
        return turn.anything(turn.words())
    lists = (offer.parameters.get("properties") or {}).keys()
    return Completion(calls=(ToolUse(offer.name, _kept(about, lists)),))


def _kept(about: MemoryFacts, lists: Collection[str]) -> Json:
    """Return its arguments: what people told about themselves, by list, and if asked for, the first and last lines."""
    earlier = [line.text for line in about.said if line.who]
    own = [line.text for line in about.said if not line.who]
    quoted = [f'It began with "{_short(earlier[0])}"'] if earlier else []
    quoted += [f'the last word of the others was "{_short(earlier[-1])}"'] if earlier[1:] else []
    quoted += [f'my own was "{_short(own[-1])}"'] if own else []
    kept = {
        "preferences": [sentence for sentence in _sentences(earlier) if _LIKES.search(sentence)],
        "people": [s for s in _sentences(earlier) if _ABOUT.search(s) and not _LIKES.search(s)],
    }
    told = {name: [_entry(each) for each in found[:_MOST]] for name, found in kept.items() if name in lists and found}
    summary = "; ".join(quoted) + "." if quoted else "Nothing was said."
    return {"summary": summary, **told} if "summary" in lists else told


def _sentences(texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield from (part for part in SENTENCE_END.split(text) if part and not part.endswith("?"))


def _entry(sentence: str) -> str:
    about = " ".join(sentence.split()[:_SUBJECT_WORDS]).rstrip(".,;:!")
    return f"{about.replace(':', '')}: {sentence}"


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED_CHARS else f"{text[:_QUOTED_CHARS].rstrip()}…"


MODEL = "town/small-scripted-mind"
TABLE: Mapping[type[object], Callable[[MindTurn, Any], Completion]] = {
    PostFacts: answer_post,
    MessageFacts: answer_message,
    IssueFacts: answer_issue,
    ExpressionFacts: express,
    OwnerFacts: answer_owner,
    RoomFacts: take_part,
    MemoryFacts: remember,
    QuestionFacts: answer_question,
    ReflectionFacts: reflect,
    OwnTimeFacts: keep_own_time,
    ReadingFacts: look_up,
    CodingFacts: write_code,
    ReviewFacts: review,
}
"""The function that answers each kind of turn, from the turn and its subject."""


class ScriptedMind:
    """A `Mind`. Another `seed` makes other choices."""

    models = (MODEL,)
    about = "They think with a small scripted mind, not a language model."

    def __init__(self, *, seed: int = 0) -> None:
        self._bank = load_bank()
        self.builds = (
            f"This demo's mind can build {buildable(self._bank)}. `soul demo --mind gateway` builds what you ask."
        )
        self._seed = seed

    async def complete(self, request: ChatRequest) -> Completion:
        return self.answer(request)

    def answer(self, request: ChatRequest) -> Completion:
        """Return the answer. A request without facts comes from another client: its last line counts as an owner's."""
        facts = request.facts
        if facts.about is None:
            line = next((one.text for one in reversed(request.messages) if one.role == "user"), "")
            facts = replace(facts, about=OwnerFacts(line))
        offers = {offer.name: offer for offer in request.offers}
        return TABLE[type(facts.about)](MindTurn(facts, offers, request.force, self._bank, self._seed), facts.about)
