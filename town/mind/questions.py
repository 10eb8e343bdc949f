"""Answers named questions with one word, a list or a program: one table row for each question. Pure."""

import json
import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from adapters.space.types import HOST
from common.facts import CodingFacts, QuestionFacts
from common.text.graphemes import fit_post_text, grapheme_len
from common.text.host_intent import classify_host_intent_structural
from town.mind.replies import MindTurn
from town.mind.words import ADDRESS, MAX_GRAPHEMES, Bank, BankWords, Idea, fit, stems, without_questions
from town.model.types import Completion, Json, ToolUse

PLANNED_AT_ONCE = 2

_MOST_PARTS, _TITLE_CHARS = 8, 60
_WORKSPACE = re.compile(
    r"\b(?:make|open|create|set up)\b.{0,40}\bworkspace\b(?: and a plan\b)?"
    r"(?: (?:for|about|called|named) (?:the |an? )?([\w -]{1,60}?)(?= for us\b| and\b|[^\w -]|$))?",
    re.IGNORECASE,
)
_BUILD = re.compile(
    r"\b(?:build|write|make|create|code) (?:us |me )an? ((?:[\w-]+ ){0,3}?[\w-]+)"
    r"(?= (?:that|which|for|to|with)\b|[^\w -]|$)",
    re.IGNORECASE,
)
_PLAN = re.compile(r"\b(?:write|make|create|draw up)\b.{0,40}\bplan\b", re.IGNORECASE)
_LIST = re.compile(r":\s([^.!?:\n]{3,300})")
_BETWEEN = re.compile(r",? and (?=\w+ )|[,;]")
_OPENING = re.compile(r"^(?:and |it |that |which |should |shall |can |must |to )+", re.IGNORECASE)
_POLITE = re.compile(
    r"^(?:@[\w.-]+[,:]? +|[\w-]+[,:] +|please |hey |ok(?:ay)?,? |just |go ahead and |let's "
    r"|i(?:'d like| need| want) you to |(?:can|could|would|will) (?:you|someone|one of you|somebody) (?:please )?)+",
    re.IGNORECASE,
)
_NO_SIGNS = re.compile(r"[^a-z0-9]+")


def shared_work(turn: MindTurn, text: str) -> Completion | None:
    """Return the next call for the workspace, then the plan in it, that `text` asks for; None if no call is left.

    A request to build a program that we know asks for both; for an unknown program nothing is begun.
    """
    asked, build = _WORKSPACE.search(text), _BUILD.search(text)
    found = asked or build
    if found is None or (turn.last and turn.last.failed) or (not asked and row_for(turn.bank, text) is None):
        return None
    name = (found[1] or "together").strip()
    done = {outcome.tool for outcome in turn.facts.outcomes}
    if "more_tools" in turn.offers and "workspace_create" not in turn.offers and "more_tools" not in done:
        return turn.call("more_tools", {"family": "workspace"})
    if "workspace_create" in turn.offers and "workspace_create" not in done:
        return turn.call("workspace_create", {"name": name})
    if "plan_create" in turn.offers and "plan_create" not in done and (build or _PLAN.search(text)):
        tasks = [_task(part) for part in _parts(text)[:PLANNED_AT_ONCE]]
        if not tasks and (known := plan_of(turn.bank, text))["tasks"]:
            return turn.call("plan_create", known)
        begun = {"title": f"Begin {name}", "description": f"What {name} needs first.", "files": ["README.md"]}
        return turn.call("plan_create", {"title": name, "goal": f"{name} can be used.", "tasks": tasks or [begun]})
    return None


def refused(words: BankWords, text: str, *, is_order: bool) -> str:
    """Return the reply to a request for work that this mind cannot do; "" if `text` is none.

    `is_order`: the text is the owner's, so that a sentence that begins with a verb is a request.
    """
    bank = words.bank
    asks = _BUILD.search(text) or (is_order and _is_errand(bank, text))
    return words.line("cannot") if asks and not bank.intent_of(text) and row_for(bank, text) is None else ""


def bare_request(text: str) -> str:
    """Return a request without courtesies and names."""
    return _POLITE.sub("", text.strip())


def _is_errand(bank: Bank, text: str) -> bool:
    """Return whether a text begins as an order, or says something about a repository that it links to."""
    plain = ADDRESS.sub(" ", text).strip(" .!")
    links = "github.com/" in text and bool(plain) and "?" not in text
    return links or re.match(rf"(?:{bank.lines['errands']})\b", bare_request(text), re.IGNORECASE) is not None


def told(turn: MindTurn, words: BankWords, account: str = "", *, is_order: bool = False) -> Completion | None:
    """Return a reply about work done in this turn, or impossible work; a like if a plan lacked nothing; else None.

    `account` is our name on GitHub, if the reply must state it; `is_order` as for `refused`.
    """
    done = next(
        (outcome for outcome in reversed(turn.facts.outcomes) if outcome.act in words.bank.lines["built"]), None
    )
    if done is None or (turn.last and turn.last.failed):
        cannot = refused(words, words.text, is_order=is_order) if turn.may("bluesky_reply") else ""
        return turn.call("bluesky_reply", {"text": fit(cannot)}) if cannot else None
    if done.act == "plan_found" and turn.may("bluesky_like"):
        return turn.call("bluesky_like", {"reason": words.line("reasons", "like")})
    if not turn.may("bluesky_reply"):
        return None
    act = "plan_made" if done.act == "plan_extended" and not done.words else done.act
    said = words.line("built", act, words="; ".join(done.words), url=done.url)
    introduced = f"{words.line('account', username=account)} {said}" if account else said
    return turn.call("bluesky_reply", {"text": fit(introduced)})


def plan_of(bank: Bank, title: str) -> Json:
    """Return the title, goal and tasks of a plan for what a title asks for; no tasks if no program is known for it."""
    row = row_for(bank, title) or {}
    tasks = [dict(one) for one in row.get("tasks", ())]
    return {"title": row.get("title", title), "goal": row.get("goal", f"{title}."), "tasks": tasks}


def row_for(bank: Bank, title: str) -> Mapping[str, Any] | None:
    """Return the row of the program that does all that a title asks for; None if a word of the title is unknown."""
    asked = ADDRESS.sub(" ", title)
    matching = (row for row in bank.code if re.search(row["match"], asked, re.IGNORECASE | re.DOTALL))
    return next((row for row in matching if stems(asked) <= stems(row["words"])), None)


def buildable(bank: Bank) -> str:
    """Return what can be built, separated by commas."""
    return ", ".join(row["label"] for row in bank.code if "label" in row)


def missing(fields: Mapping[str, tuple[str, ...]]) -> Json:
    """Return the parts whose telling words do not all occur in one task."""
    known = [stems(text) for text in fields.get("tasks", ())]
    parts = (part for text in fields.get("wanted", ()) for part in _parts(text))
    return {
        "missing": [{"asked": part} | _task(part) for part in parts if not any(stems(part) <= one for one in known)]
    }


def _parts(text: str) -> list[str]:
    """Return the things to build that the text lists, a few words each, in its own words."""
    listed = (piece for found in _LIST.finditer(text) for piece in _BETWEEN.split(found[1]))
    return [part for piece in listed if (part := _OPENING.sub("", piece.strip()))][:_MOST_PARTS]


def _task(part: str) -> Json:
    title = part[:1].upper() + part[1:_TITLE_CHARS]
    name = _NO_SIGNS.sub("-", part[:_TITLE_CHARS].lower()).strip("-") or "more"
    return {"title": title, "description": f"Somebody opens it, and it does this: {part}.", "files": [f"{name}.py"]}


_UNKNOWN = "this mind knows a few programs by heart, and the task asks for none; a language model could write it"
_UNEXPECTED = "what this mind knows by heart does not fit what is there"
README, _HEADING = "README.md", "# A new page\n"
"""The page to which a task that names it adds how to run the program, and how a new page begins."""
_EXPLAINED = "The page says what it is for, how to run it, and how anybody can tell that it works."
_FOUND = "All of it is there already, and its tests pass."


def write_code(turn: MindTurn, about: CodingFacts) -> Completion:
    """Return the next call for a task, which may ask for documents alone.

    For a program, in order: its files, the README if it names it, its changes once a run failed without them, a
    passing run, the end.
    """
    row = row_for(turn.bank, about.title)
    texts = {} if row else _documents(turn.bank, about)
    if row is None and not texts:
        tool, given = "blocked", {"reason": _UNKNOWN}
    elif turn.last is None:
        tool, given = "list_files", {}
    else:
        changed = {
            one.text for one in turn.facts.outcomes if one.tool in {"write_file", "edit_file"} and not one.failed
        }
        tool, given = _code(turn, about, row, changed) if row else _write_pages(turn, texts, changed)
    return Completion(calls=(ToolUse(tool, given),))


def _write_pages(turn: MindTurn, texts: Mapping[str, str], changed: Container[str]) -> tuple[str, Json]:
    path = next((one for one in texts if one not in changed), "")
    return ("write_file", {"path": path, "content": texts[path]}) if path else _finish(turn, _EXPLAINED)


def _code(turn: MindTurn, about: CodingFacts, row: Mapping[str, Any], changed: Container[str]) -> tuple[str, Json]:
    last = turn.facts.outcomes[-1]
    files = [{"path": path, "content": text} for path, text in row["files"].items() if path not in changed]
    edits = [{"path": path, **edit} for path, edit in row.get("edits", {}).items() if path not in changed]
    if files and not last.failed:
        return "write_file", files[0]
    if edits and (last.tool, last.failed) in {("run", True), ("edit_file", False)}:
        return "edit_file", edits[0]
    if README in about.files and all(one.text != README for one in turn.facts.outcomes):
        return "edit_file", {"path": README, "old": _HEADING, "new": f"{_HEADING}\n`{row['use']}`: {row['shows']}\n"}
    return _end(turn, row["run"], row["done"], is_found=bool(edits))


def _end(turn: MindTurn, command: str, done: str, *, is_found: bool) -> tuple[str, Json]:
    """Return the run once all is written, then the end."""
    last = turn.facts.outcomes[-1]
    if last.failed and last.tool != "finish" and last.text != README:
        return "blocked", {"reason": _UNEXPECTED}
    is_over = last.tool in {"run", "finish"}
    return _finish(turn, done, is_found=is_found and last.tool == "run") if is_over else ("run", {"command": command})


def _finish(turn: MindTurn, done: str, *, is_found: bool = False) -> tuple[str, Json]:
    """Return the end; a `finish` that was sent back is sent as `already_there`."""
    ended = sum(one.tool == "finish" for one in turn.facts.outcomes)
    if ended > 1:
        return "blocked", {"reason": _UNEXPECTED}
    if ended or is_found:
        return "finish", {"summary": _FOUND, "already_there": True}
    return "finish", {"summary": done, "description": done}


def _documents(bank: Bank, about: CodingFacts) -> dict[str, str]:
    """Return the texts of a task that asks for documents alone, by path.

    Returns {} for any other task, and if the goal is no program of the table: nobody here could make a document true.
    """
    row = row_for(bank, about.goal)
    if row is None or README in about.files or not all(path.endswith(".md") for path in about.files):
        return {}
    return {path: _document(path, row, about) for path in about.files}


def _document(path: str, row: Mapping[str, Any], about: CodingFacts) -> str:
    """Return a short document: purpose, how to run it, how to check it, and in an update what is new."""
    use, title = row["use"], path.rpartition("/")[2].removesuffix(".md")
    does, sees = f"- **Somebody does:** runs `{use}`.\n", f"- **They see:** {row['shows']}\n"
    new = "\n## What is new\n\nThis page was read again beside the tasks that were completed.\n"
    run = f"## How to run it\n\n```sh\n{use}\n```\n\n"
    text = f"# {title}\n\n{about.goal}\n\n## What it is for\n\n{about.goal}\n\n{run}"
    told = f"{text}## How anybody can tell\n\n{does}{sees}"
    return told + (new if about.title.startswith("Update ") else "")


_SAME_SHARE = 0.7
_MOST_FACTS = 3
_TELLING_TITLE = 2
_MOST_PAGES = 40
_FEW_WORDS = 4
_ASKED_BEFORE = re.compile(r"\b(?:i asked|asked for|waiting|yet\?|so far|answered)", re.IGNORECASE)
_GO_AHEAD = re.compile(r"\W*(?:yes|yeah|sure|ok|okay|go ahead|please do|do (?:it|that|so))\b", re.IGNORECASE)
_TAKES_BACK = re.compile(
    r"\W*(?:(?:no|stop)\b.{0,20}\b(?:leave|don't)\b|never ?mind|leave it|forget it)", re.IGNORECASE
)
_ASKS_WHERE = re.compile(r"\brepositor(?:y|ies)\b", re.IGNORECASE)
_ASKS = re.compile(r"\b(?:should|could|can|would be great)\b", re.IGNORECASE)
_WORK = re.compile(r"\b(?:issue|plan|ticket|fix|repair|sorted out|write (?:this|that|it) up)", re.IGNORECASE)
_ONLY_THANKS = re.compile(
    r"\W*(?:thanks?|thank you|lovely|good (?:night|morning)|bye)\b[^.?]{0,40}[.!]?", re.IGNORECASE
)
_THANKS = re.compile(r"\b(?:thanks?|thank you|great work|lovely|good (?:night|morning))\b", re.IGNORECASE)

Fields = Mapping[str, tuple[str, ...]]


def _repeats(new: str, said: Iterable[str]) -> bool:
    """Return whether most telling words of `new` occur in one of the texts in `said`."""
    told = stems(new)
    return bool(told) and any(len(told & stems(text)) / len(told) >= _SAME_SHARE for text in said)


def _judged(fields: Fields) -> str:
    new, said = (*fields.get("candidate", ()), *fields.get("second", ())), ("said", "first")
    return "YES" if new and _repeats(new[0], (text for name in said for text in fields.get(name, ()))) else "NO"


def _has_fault(_fields: Fields) -> str:
    """Answer NO: the town's mind writes no such message on purpose, so its suspicions are always wrong."""
    return "NO"


def _worth_an_answer(fields: Fields) -> str:
    """Answer LISTEN if the newest message only thanks or repeats one, or others meet what the host asked for.

    A colon follows the name in a line.
    """
    lines = fields.get("said", ())
    *before, newest = [text.partition(": ")[2] for text in lines] or [""]
    asked = next((words for name, _, words in (text.partition(": ") for text in reversed(lines)) if name == HOST), "")
    if classify_host_intent_structural(asked).intent == "action_request":
        return "LISTEN"
    return "LISTEN" if _repeats(newest, before) or _ONLY_THANKS.fullmatch(newest) else "SPEAK"


def _intent(fields: Fields) -> str:
    text = "\n".join(fields.get("content", ()))
    if _TAKES_BACK.match(text):
        return "WITHDRAWAL"
    if classify_host_intent_structural(text).intent == "action_request" and not _GO_AHEAD.match(text):
        return "ACTION_REQUEST"
    if _THANKS.search(text):
        return "DISCUSSION"
    if _answers(text, fields.get("said", ())):
        return "GO_AHEAD"
    if _ASKED_BEFORE.search(text):
        return "FOLLOW_UP"
    return "ACTION_REQUEST" if any(map(_asks_for_work, text.split("\n"))) else "DISCUSSION"


def _answers(text: str, said: Iterable[str]) -> bool:
    """Return whether `text` says yes to an earlier question, or names the repository that one asks for."""
    asked = [line for line in said if "?" in line]
    is_name = "?" not in text and len(text.split()) <= _FEW_WORDS and any(_ASKS_WHERE.search(line) for line in asked)
    return bool(asked) and (is_name or _GO_AHEAD.match(text) is not None)


def _asks_for_work(line: str) -> bool:
    asks = _ASKS.search(line)
    return asks is not None and _WORK.search(line, asks.end()) is not None


_RIGHTS = (
    ("reply_again", re.compile(r"\b(?:reply|answer|write|talk)\b.{0,40}\bagain\b", re.IGNORECASE)),
    ("delete", re.compile(r"\b(?:delete|remove|take down)\b.{0,20}\byour (?:post|reply)\b", re.IGNORECASE)),
    ("forget", re.compile(r"\b(?:forget|delete|erase|wipe|remove)\b.{0,60}\b(?:me|my|mine)\b", re.IGNORECASE)),
    ("know", re.compile(r"\b(?:know|store|stored|keep|remember)\b.{0,40}\b(?:me|my|mine)\b", re.IGNORECASE)),
    ("no_reply", re.compile(r"\b(?:do not|don't|stop|never)\b.{0,40}\b(?:reply|answer|writ)|leave me", re.IGNORECASE)),
    ("why", re.compile(r"\bwhy\b.{0,20}\byou\b.{0,20}\b(?:reply|answer|write)\b", re.IGNORECASE)),
)
"""What people ask for about their own data, by its words; the first matching row counts."""


_ISSUE = re.compile(r"#(\d{1,9})\s+(\S.*)")
_UNFINISHED = re.compile(r"\b(?:todo|planned|in progress|not yet)\b", re.IGNORECASE)
_LINE_CHARS, _MOST_LINES = 120, 5
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_OF_AI = re.compile(r"\b(?:AI|LLMs?|agents?|bots?|machines?|autonomous accounts?)\b", re.IGNORECASE)
_RULES = (
    ("conditions", re.compile(r"\b(?:disclos\w{1,4}|review\w{0,3}|unless|only|ask|before)\b", re.IGNORECASE)),
    ("forbidden", re.compile(r"\b(?:no|not|forbid\w{0,5}|reject\w{0,3}|closed?|stay away)\b", re.IGNORECASE)),
    ("allowed", re.compile(r"\b(?:welcome|allow\w{0,3}|invited)\b", re.IGNORECASE)),
)
"""What a project's files say about AI agents, by its words; the first matching row counts."""


def right_in(post: str) -> str:
    """Return what a post asks for about its author's own data, by its words; "none" for nothing."""
    return next((kind for kind, words in _RIGHTS if words.search(post)), "none")


def _right(fields: Fields) -> str:
    return json.dumps({"kind": right_in("\n".join(fields.get("post", ()))), "language": "en"})


def _repository_rule(fields: Fields) -> str:
    said = (one for text in fields.get("rules", ()) for one in _SENTENCE_END.split(text))
    rules = "\n".join(one for one in said if _OF_AI.search(one))
    return json.dumps({"rule": next((rule for rule, words in _RULES if words.search(rules)), "none")})


def _rule_pages(fields: Fields) -> str:
    """Return the numbers of the first pages, whatever their names."""
    count = len("".join(fields.get("names", ())).splitlines())
    return json.dumps({"pages": list(range(1, min(count, _MOST_PAGES) + 1))})


def _worth_a_post(fields: Fields) -> str:
    """Answer yes if the title has several telling words."""
    return "yes" if len(stems(" ".join(fields.get("title", ())))) >= _TELLING_TITLE else "no"


def _told_plainly(fields: Fields) -> str:
    """Return the texts without a final full stop, for a voice that does without."""
    return json.dumps({key: "".join(texts).removesuffix(".") for key, texts in fields.items()})


def _verdict(fields: Fields) -> Json:
    """Return a verdict: what a line of a page calls unfinished remains to be done."""
    lines = [line.strip(" |-*#") for page in fields.get("pages", ()) for line in page.splitlines()]
    remaining = [line[:_LINE_CHARS] for line in lines if _UNFINISHED.search(line)][:_MOST_LINES]
    summary = "Some of what the pages name is not there yet." if remaining else "All that the pages name is there."
    return {"complete": not remaining, "summary": summary, "remaining": remaining}


_YES = re.compile(r"\b(?:yes|please do|go ahead|let's)\b", re.IGNORECASE)
_NO = re.compile(r"\b(?:no|not|never|don't)\b", re.IGNORECASE)


def _work_request(fields: Fields) -> str:
    """Return the last comment that says yes or no, if it says yes; comment 0 otherwise."""
    said = fields.get("comments", ())
    told = [(number, text) for number, text in enumerate(said, 1) if _YES.search(text) or _NO.search(text)]
    number, text = told[-1] if told and not _NO.search(told[-1][1]) else (0, "")
    return json.dumps({"comment": number, "quote": text}, ensure_ascii=False)


def _ordered(fields: Fields) -> str:
    """Answer YES if the first word of the act, its verb, occurs in the owner's line."""
    act = "".join(fields.get("act", ())).split()[:1]
    return "YES" if act and stems(act[0]) & stems("".join(fields.get("line", ()))) else "NO"


_QUESTIONS: Mapping[str, Callable[[Fields], str]] = {
    "Judge": _judged,
    "Fault": _has_fault,
    "Same Claim": _judged,
    "Said Already": _judged,
    "First Look": _worth_an_answer,
    "Intent": _intent,
    "Withdrawal": lambda fields: str(len(fields["asked"])),
    "Owner Order": _ordered,
    "False Report": lambda _: "NO",  # this mind never reports what it did not do
    "repository-pages": _rule_pages,
    "repository-rules": _repository_rule,
    "rights-request": _right,
    "work-request": _work_request,
    "announcement-decision": _worth_a_post,
    "extraction": lambda _: "[]",
    "voice-phrases": _told_plainly,
}
"""Answers in plain text, by the name of the question."""


_HANDED: Mapping[str, Callable[[Fields], Json]] = {
    "plan-missing": missing,
    "workspace-health": _verdict,
    "review-wishes": lambda _: {"title": "", "wishes": []},
    "plan-draft": lambda fields: json.loads(fields["draft"][0]),
}
"""The arguments of the first tool, by the name of the question."""


_SENTENCES: Mapping[str, str] = {
    "introduction": "introduction",
    "peer-announcement": "found",
    **{
        f"rights-answer: {kind}": f"right_{kind}"
        for kind in ("know", "forget", "no_reply", "reply_again", "why", "delete")
    },
}
"""Questions answered with a sentence in the first tool, with their heading in `talk.yaml`."""


def _open_ritual(words: BankWords, fields: Fields) -> Json:
    """Return an idea, a reaction to the owner's line if there is one, and a question to those invited."""
    ritual, named = "".join(fields["ritual"]), " ".join(f"@{handle}" for handle in fields["invited"])
    owner_line = f" {words.line('ritual_owner')}" if fields.get("owner") else ""

    def text(idea: Idea) -> str:
        return " ".join(f"{ritual}: {without_questions(idea.say)}{owner_line} {named} {idea.ask}".split())

    said = " ".join(fields.get("earlier", ()))
    ideas = [words.next_idea(), *words.rng.sample(words.field.ideas, len(words.field.ideas))]
    fitting = [one for one in ideas if text(one).count("?") == 1 and grapheme_len(text(one)) <= MAX_GRAPHEMES]
    return {"text": text(next((one for one in fitting if one.ask not in said), fitting[0]))}


def _write_memo(words: BankWords, fields: Fields) -> Json:
    """Return what we keep, why, and what changes from now on, by our part and the idea nearest to what was said."""
    part = "".join(fields["part"])
    idea = words.match(" ".join(fields.get("said", ())), words.own_fields) or words.next_idea()
    pick, why = without_questions(idea.say), words.line("ritual_why", part)
    body = f"**I keep:** {pick}\n\n**Why:** {why}\n\n**From now on:** {words.line('ritual_next', part)}"
    return {"title": words.line("ritual_title", part), "body": body}


def _write_plan(words: BankWords, fields: Fields) -> Json:
    """Return a plan of the issues with a known program, or of what a title asks for; without tasks if none is known."""
    issues = [found for text in fields.get("issues", ()) if (found := _ISSUE.match(text))]
    if issues:
        plans = [(int(found[1]), plan_of(words.bank, found[2])) for found in issues]
        known = [(number, plan) for number, plan in plans if plan["tasks"]] or plans[:1]
        tasks = [task | {"issues": [number]} for number, plan in known for task in plan["tasks"]]
        return known[0][1] | {"tasks": tasks}
    return plan_of(words.bank, "".join(fields.get("title", ())) or "What was talked about")


def _decide_to_mend(words: BankWords, fields: Fields) -> Json:
    """Return yes for a friction with a known skill; anything else would have to become a habit."""
    slip = words.field.slip
    knows = slip is not None and slip.friction in "".join(fields.get("description", ()))
    reason = words.line("mends", "known" if knows else "unknown")
    return {"pursue": knows, "reason": reason, "rung": "skill" if knows else "habit"}


_WRITTEN: Mapping[str, Callable[[BankWords, Fields], Json]] = {
    "ritual-initiation": _open_ritual,
    "self-improvement-decision": _decide_to_mend,
    "ritual-memo": _write_memo,
    "plan": _write_plan,
}
"""The arguments of the first tool that hold text of our own, by the name of the question."""


_TRIED = re.compile(r"^#{1,6} (.{1,200})\n(?:(?!#).*\n){0,20}?.*runs `([^`\n]{1,200})`", re.MULTILINE)


def _try_scenarios(turn: MindTurn, page: str) -> tuple[str, Json]:
    """Return the next call: the command of each scenario is run; the scenario fails if the command does."""
    scenarios = _TRIED.findall(page) or [(page.strip().partition("\n")[0], "")]
    runs, told = (sum(one.tool == name for one in turn.facts.outcomes) for name in ("run", "scenario_verdict"))
    if told == len(scenarios):
        return "finish", {}
    name, command = scenarios[told]
    if command and runs == told:
        return "run", {"command": command}
    verdict = ("fails" if turn.last and turn.last.failed else "passes") if command else "cannot_be_tried"
    return "scenario_verdict", {"scenario": name, "verdict": verdict, "saw": f"I ran `{command or 'nothing'}`."}


def answer_question(turn: MindTurn, about: QuestionFacts) -> Completion:
    """Return the answer, as plain text or as a tool call."""
    if answer := _QUESTIONS.get(about.question):
        return Completion(answer(about.fields))
    if about.question == "scenario-run":
        return Completion(calls=(ToolUse(*_try_scenarios(turn, "".join(about.fields["page"]))),))
    words = turn.words(text="\n".join(text for texts in about.fields.values() for text in texts))
    if (heading := _SENTENCES.get(about.question)) and turn.first_offer:
        handle = next(iter(about.fields.get("handle", ())), "")
        facts = "; ".join(about.fields.get("facts", ())[:_MOST_FACTS])
        return turn.call(turn.first_offer.name, {"sentence": words.line(heading, handle=handle, facts=facts)})
    if (handed := _HANDED.get(about.question)) and turn.first_offer:
        return turn.call(turn.first_offer.name, handed(about.fields))
    if (written := _WRITTEN.get(about.question)) and turn.first_offer:
        return turn.call(turn.first_offer.name, written(words, about.fields))
    if about.question == "announcement-post":
        title, url = ("".join(about.fields.get(name, ())) for name in ("title", "url"))
        text = fit_post_text(words.line("announced", title=title), url)
    else:
        text = words.line("ground") if about.question == "grounding" else ""
    return Completion(text) if text else turn.anything(words)
