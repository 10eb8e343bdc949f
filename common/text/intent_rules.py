"""The phrases that show what a host's message wants: an act, a report on one, or a conversation.

Only tables; `common/text/host_intent.py` applies them in order. All are for text on one line, with plain quotation
marks, and ignore case.
"""

import re
from collections.abc import Iterable

from common.text.patterns import lazy

MAKING = (
    "create|open|make|post|file|write|build|draft|submit|fix|handle|deploy|add|remove|delete|close|merge|push|implement"
    "|configure|install|launch|set up"
)
GIVING = "give|provide|show|send|share|update"
LOOKING = "run|start|check|review|test|investigate|resolve|work on|look into"
COMMENTING = (
    r"comment(?= (?:on|under|in|below) (?:(?:the|this|that|our|my|a) )?"
    r"(?:issue|ticket|pr|pull request|thread|\#\d|https?://|github\.com/))"
)
"""To comment is work only if the object is named: "comment on the weather" asks for an opinion."""
VERBS = f"{MAKING}|{GIVING}|{LOOKING}|{COMMENTING}"
VERBS_PLUS = f"{VERBS}|address|go ahead|take care|get on"

_SOMEBODY = (
    "(?:you|u)(?: (?:two|three|both|all|guys|folks|agents))?|(?:someone|somebody|anyone|anybody)(?: (?:here|else))?"
    "|(?:one|any|either|some) of (?:you|the agents)(?: (?:two|three|all|guys|folks|agents))?|an agent"
)
_SOFTLY = (
    "(?:(?:please|kindly|also|just|maybe|perhaps|possibly|then|now|quickly|immediately|finally|actually|still|all|guys"
    "|at some point|try to|go ahead and),? )*"
)
_THINGS = (
    "issues?|tickets?|prs?|plans?|posts?|threads?|repo|repository|docs?|documents?|forms?|fields?|box|pages?|buttons?"
    "|widgets?|validation|components?|files?|templates?|sections?|labels?|modules?|drafts?|comments?|links?"
)
_MORE_WORDS = rf"(?:(?!(?:{_THINGS}|about|for|on|of|in|with|from|and|to|as)\b)[\w'-]+\s+){{0,2}}"
_ARTEFACTS = "link|issue|url|pr|pull request|plan|update"


def _rule(pattern: str) -> re.Pattern[str]:
    return lazy(pattern, re.IGNORECASE | re.VERBOSE)


def _phrase(text: str) -> str:
    """Return plain words escaped for a verbose pattern."""
    return text.replace(" ", r"\ ")


def _any(*texts: str) -> str:
    return f"(?:{_phrase('|'.join(texts))})"


GREETING = _rule(
    rf"""(?:
        @[\w.-]*\w
      | (?P<hello>hey|hi|hello)
      | {_any("ok|okay|alright|all right|yes|yeah|yep|so|now|and|also|everyone|everybody|y'all")}
      | {_any("great|good|nice|perfect|cool|thanks|thank you|well|sure|all|agents|guys|both|folks|team|friends")}
        (?=\s*[,:;.!\u2013\u2014])
    )(?!['\w-])\s*[,:;.!\u2013\u2014-]*\s*"""
)
"""Matches what precedes the message itself: a greeting, a filler word, a name with `@`."""
_NO_NAMES = (
    f"{VERBS_PLUS}|if|when|while|maybe|perhaps|honestly|however|frankly|personally|today|imo|imho|i|we|no"
    "|question|idea|thought|note|fyi|news|quote|example|reminder|status|eta"
)
NAME_BEFORE_COMMA = _rule(
    rf"""(?P<name>[^\W\d_][\w.-]*)
    (?:(?:\ and\ |\ &\ |,\ )(?!{_any(_NO_NAMES)}[,:])[^\W\d_][\w.-]*){{0,3}}\s*[,:]\s+"""
)
"""Matches a name without `@`; `NO_NAME` lists words that only look like one."""
NO_NAME = _rule(rf"(?:{_any(_NO_NAMES)})$")
GREETED_NAME = _rule(rf"[^\W\d_][\w.-]*\s+(?=(?:can|could|would|will|please|{_any(VERBS_PLUS)})\b)")
"""A bare name between a greeting and a request."""
NO_GREETED_NAME = _rule(
    rf"""(?:{_any(VERBS_PLUS)}|can|could|would|will|please|kindly|let's|i|we|you|they|don't|do|to|just|who|what|how|why
    |the|an?|this|that|these|those|my|our|your|their|some|every|no|not|status|any)\b"""
)
POLITE = _rule(r"(?:please|kindly|pls)(?!['\w-])\s*,?\s*")

ASKED_OF_SOMEBODY = _rule(
    rf"""(?:(?:please|kindly|pls),?\ )?(?:can|could|would|will)\ {_any(_SOMEBODY)},?\ {_phrase(_SOFTLY)}
         (?P<verb>{_any(VERBS)})\b
       | (?:would|do)\ {_any(_SOMEBODY)}\ mind\ (?P<gerund>[a-z]+ing)\b"""
)
"""A3: a request in the form of a question."""
_MODALS = "(?:can|could|would|will)(?:n't|'t)?|won't"
PERHAPS_ASKED = _rule(
    rf"""(?:^|[,;:(\u2013\u2014-]\s*|\b{_any("and|but|or|so|then|maybe|perhaps")}\s+)
        (?:{_MODALS})\b,?\s+(?!{_any("we|I|it|this|that|these|those|there|they|he|she|people")}\b)
      | ^(?!{_any("what|how|why|where|who|which|when")}\b)[\w.-]+\s+(?:{_MODALS})\s+{_any(_SOMEBODY)}\b
      | \b{_any(_SOMEBODY)}\s+(?:who\s+)?(?:{_MODALS}|should|must|ought)\b
      | ^(?:who\s+(?:{_MODALS})|{_any("why don't|how about|mind|care to|anyone|anybody|someone|somebody")})\b
      | ^shall\s+{_any(_SOMEBODY)}\b | \b{_any("it possible|it be possible|any chance|a favou?r|up for|got time to")}\b
      | \b{_any("can|could|may|might")}\ i\ {_any("ask|get|trouble|bother")}\ {_any(_SOMEBODY)}\b
      | \b(?:are|is)\ {_any(_SOMEBODY)}\ {_any("able|free|available|willing|ready")}\ to\b
      | \bdo(?:es)?\ {_any(_SOMEBODY)}\ {_any("have (?:the |a )?(?:time|moment|minute|chance)|want")}\ to\b
      | \b(?:please|kindly|pls)\b"""
)
"""Where a request without one of the sure forms may begin; it is one only if a verb of work follows."""
PERHAPS_WORK = _rule(
    rf"""\b(?P<verb>(?:re-?)?{_any(VERBS_PLUS)}
      | {_any("announce|assign|bump|change|clean up|commit|debug|document|edit|label|log|move|prepare|publish")}
      | {_any("raise|refactor|release|rename|reply|report|revert|roll back|schedule|ship|tweet|upgrade|write up")}
      | (?:re-?)?{_any("creat|open|mak|post|fil|writ|build|draft|submitt|fix|handl|deploy|updat|add|remov")}ing
      | (?:re-?)?{_any("delet|clos|merg|push|implement|configur|install|runn|launch|check|review|test|resolv")}ing
    )\b"""
)
"""Work in a sentence that may be a request; has more verbs than those of sure requests."""
NEEDED = _rule(
    rf"""\b{_any("I need|I want|I'd like|I would like|I require")}\ {_any(_SOMEBODY)}\ to\ {_phrase(_SOFTLY)}
    (?P<verb>{_any(VERBS)})\b"""
)
"""A4: a request addressed to somebody."""
URGED = _rule(rf"""{_any("please|kindly|go ahead and|go ahead|just|let's|okay,|okay")}\ (?P<verb>{_any(VERBS)})\b""")
"""A2: an imperative with a word before it."""
IMPERATIVE = _rule(rf"(?P<verb>{_any(VERBS_PLUS)})\b")
"""A1: a bare imperative."""
TELLING = _rule(
    r"""(?:please\ |kindly\ |just\ |do\ )?
    (?: tell\ (?!(?:me|us)\ about\ it\W*$)(?:me|us)\b | do\ tell\b
      | (?:explain|describe|elaborate|define|compare)\b(?!\s*:) | (?:say|tell)\ more\b | go\ on(?=\W*$)
      | name\ (?:one|two|three|some|an?|your)\b | (?:pick|choose)\ (?:one|between|an?|your)\b )"""
)
"""A request for information: an imperative that asks for an answer, not for work."""
SURE_OF_US = _rule(r"let's\ make\ sure\b")
_FINITE = (
    "is|are|was|were|has|have|looks?|seems?|failed|fails?|passed|passes|broke|breaks|went|ran|came|comes?|takes?|took"
)
_COMPOUND_TAILS = "results?|coverage|questions?|conflicts?|logs?|notes?|times?|scripts?|pipelines?|comments?|requests?"
NOUN_INSTEAD = _rule(
    rf"""{_any(VERBS)}\s*(?:[:?]|\s{_any(f"{_FINITE}|of")}\b|\s{_any(_COMPOUND_TAILS)}\s+{_any(_FINITE)}\b)
       | open\s+{_any("questions?|source|minded|to")}\b | post[\s-]+mortem\b | merge\s+conflicts?\b
       | {_any("test|build|run|review|deploy")}\s+(?:results?|failures?)\b | test\s+coverage\b | build\s+coverage\W*$"""
)
"""A bare first word that is not a verb: "Build failed again", "Open question: …"."""
NO_WORK = _rule(r"make\s+sense\b")
"""What is not work in any form: "Can you make sense of this?"."""
BY_ITSELF = _rule(r"(?:just|okay)\b")
"""Words before a verb that leave open whether it is one: "Just build failures again"."""
MAKING_GERUND = _rule(
    r"(?:creat|open|mak|post|fil|writ|build|draft|submitt|giv|provid|show|send|shar|fix|handl|deploy|updat|add|remov|delet"
    r"|clos|merg|push|implement|configur|install|runn|start|launch|check|review|test|investigat|resolv|sett|work|look)ing$"
)

VOICING = _rule(rf"(?:{GIVING}|post|write|submit|make|start)$")
"""Verbs that can ask for an opinion."""
OPINION = _rule(
    rf"""\s*(?:(?:off\ )?with\ )?(?:(?:with\ )?(?:me|us|everyone|the\ (?:room|group|team))\s+)?
    (?: (?:(?:your|some|any|a|an|the|more|few|their|our)\s+)*{_MORE_WORDS}
        {_any("thoughts?|opinions?|perspectives?|feedback|ideas|impressions?|reactions?|two cents")}
      | (?:(?:your|any|some|more|their)\s+){_MORE_WORDS}{_any("takes?|views?|input|sense|feelings?")}
      | (?:what|how)\ (?:you|they|everyone|each\ of\ you)(?:\ (?:all|guys|both|really|each))*
        \ (?:thinks?|feel|make\ of)
    )\b (?!\s+{_any(_THINGS)}\b)"""
)
"""What follows the verb of a request for an opinion."""
WRITTEN_DOWN = _rule(
    r"\b(?:in|as|into)\ (?:an?|the|this|that)\ (?:new\ )?"
    r"(?:issue|ticket|pr|pull\ request|plan|doc|document|file|readme|wiki|comment|draft)\b"
)
"""The opinion has to be written into something permanent, so it is work."""

_DONE = _any(
    "give|create|open|make|post|send|share|provide|do|fix|handle|finish|complete|build|write|draft|submit|deploy|push"
    "|merge|close|run|start|launch|implement|configure|install|set up|work on"
)
_FINISHED = "done|finished|created|opened|posted|sent|built|written|deployed|pushed|merged|submitted|filed|started"
_OUTCOMES = f"{_ARTEFACTS}|result|output|draft|post|comment|branch|deploy|build"
_ASKED = _any("said|asked|mentioned|requested|told you")
FOLLOW_UPS = tuple(
    _rule(pattern)
    for pattern in (
        rf"\bdid\ (?:you|anyone|anybody|someone)\ (?:(?:all|already|ever|manage\ to|get\ to)\ )*{_DONE}\b",
        r"\bdid\ (?:you|anyone|anybody|someone)\ (?:(?:all|already|ever)\ )*get\ (?:around\ )?to\ (?:it|that|this)\b",
        rf"\b(?:where's|where\ is|where\ are)\ (?:the|my|our|that)\ (?:[\w-]+\ )?{_any(_OUTCOMES)}s?\b",
        r"\bstill\ waiting\b",
        r"\bany\ (?:updates?|progress|news|word)\b",
        rf"\bI\ {_ASKED}(?:\ (?:for\ )?(?:it|this|that))?\ (?:earlier|before|already|previously)\b",
        rf"\bI\ already\ {_ASKED}\b",
        rf"\bgive\ me\ the\ (?:[\w-]+\ )?{_any(_ARTEFACTS)}s?\b",
        rf"\bprovide\b.{{0,200}}\b{_any(_ARTEFACTS)}s?\b",
        r"\bwhat\ happened\ (?:to|with)\b",
        r"\bis\ (?:it|that)\ done\b",
        rf"\bhave\ you\ (?:(?:all|already|ever)\ )?(?:{_FINISHED})\b",
        r"^(?:the\ |current\ )?status(?:\ please)?\W*$",
        r"\bstatus\ update\b",
        r"\b(?:what's|what\ is)\ the\ (?:current\ )?(?:status|eta)\b",
        r"^(?:(?:an?|the|any)\ )?eta\b(?:\W*$|\ (?:on|for)\b)",
        r"\bany\ eta\b",
        r"\b(?:how's|how\ is)\ (?:it|that|the(?:\ [\w-]+){0,3})\ (?:going|coming|progressing)\b",
        r"\bwhere\ are\ we\ (?:on|with)\b",
        r"\bupdate\ (?:me|us)\b",
        r"\bany\ luck\b",
        r"\bdid\ (?:it|that)\ (?:get|happen)\b",
        r"\bwere\ you\ able\b",
    )
)
FOLLOW_UPS_OF_OPEN_REQUEST = tuple(_rule(pattern) for pattern in (r"\bgive\ me\ the\b", r"\bprovide\b"))
"""Follow-ups only while a request is open."""

LINK = lazy(r"https?://\S*[^\s?!.,;:)]", re.IGNORECASE)

_SUBJECTS = (
    "we|you|they|people|everyone|each|anyone|all|the|this|that|it|these|those|our|my|there|somebody|one|folks|y'all"
    "|you all|team"
)
_IDIOMS = (
    "makes? sense|rings? a bell|sounds? (?:right|good|okay|fair|reasonable)|looks? (?:right|good|correct|okay)"
    "|seems? (?:right|correct|off|wrong|reasonable)|feels? (?:right|off|weird|wrong)|think (?:so|not)"
    "|(?:know|see) what I mean|get what I'm saying|follow(?: me)?|with me(?: so far)?|on the same page"
    "|agree or disagree|(?:fair|safe) to say|worth (?:it|doing|considering|exploring)|matter|make of (?:this|that|it)"
)
_OPENERS = (
    "I think|I feel|I believe|I wonder|I'm curious|I'm wondering|I'm thinking|I am curious|I am wondering|I suspect"
    "|in my (?:view|opinion|experience)|my (?:thought|take|sense|feeling) is|honestly|to be honest|imo|imho"
)
_VIEWS = "thoughts|opinions?|perspectives?|take|ideas?|feelings?|views?|input|feedback|reactions?|impressions?"
_RESPONSES = "input|feedback|questions|concerns|objections|suggestions|recommendations"
_AUXILIARIES = "do|does|did|are|is|was|were|should|would|could|can|will|might|have|has"
QUESTIONS = tuple(
    _rule(pattern)
    for pattern in (
        rf"^(?:do|does|did|have|has|are|is|was|were|should|would|could|can|might|shall)\ {_any(_SUBJECTS)}\b",
        rf"\b{_any(_VIEWS)}\ (?:on|about|regarding|around|for)\b",
        rf"\bany\ (?:thoughts|ideas|opinions|{_RESPONSES})\b",
        r"^have\ (?:you|each|all|everyone|y'all)\b.*\?$",
        rf"\b{_any(_IDIOMS)}\b",
    )
)
"""Discussion if there is also a question mark: D1, D4 to D7."""
TALK = tuple(
    _rule(pattern)
    for pattern in (
        rf"^(?:what|how|why|where|who|which|when)\ (?:{_AUXILIARIES}|about|if)\b",
        r"^(?:what|how|who|where|why|when)'s\ (?:your|everyone|the|this|that)\b",
        rf"^{_any(_OPENERS)}\b",
    )
)
"""Discussion in any case: D2, D3, D8."""


def holds(rules: Iterable[re.Pattern[str]], text: str) -> bool:
    """Return whether any of `rules` is found in `text`."""
    return any(rule.search(text) for rule in rules)
