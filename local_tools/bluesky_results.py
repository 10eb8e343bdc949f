"""What a reply tells of the work that its turn did: the link of what was made."""

from __future__ import annotations

from common.text.graphemes import fit_post_text, grapheme_len, leading_sentences, truncate_graphemes
from local_tools.bluesky_turns import add_sentence, told_account
from modules.lives.bluesky.types import MadeThing, ThreadTurn
from modules.services.plans.wishes import tells_link
from modules.services.voice_phrases.store import Phrase

_WORDS_CHARS = 90


def completed(text: str, thread: ThreadTurn, phrase: Phrase, most: int) -> str:
    """Return `text` with the link of what the turn made, and with our account on GitHub where it is due.

    Its last sentences give way to them.
    """
    account = "" if told_account(text, thread.account) else phrase("bluesky.github_account", username=thread.account)
    room = most - grapheme_len(account) - 1 if account else most
    text = _with_link(text, thread, phrase, room)
    return add_sentence(text, account, most) if account else text


def _with_link(text: str, thread: ThreadTurn, phrase: Phrase, most: int) -> str:
    made, found = thread.revisions.made, thread.revisions.found
    last = made[-1] if made else MadeThing("plan_made", found) if found else None
    if last is None or tells_link(text, last.url):
        return text
    words = truncate_graphemes("; ".join(last.words), _WORDS_CHARS)
    kind = "plan_made" if last.kind == "plan_extended" and not words else last.kind
    line = phrase(f"bluesky.{kind}", url=last.url, **({"tasks": words} if kind == "plan_extended" else {}))
    if grapheme_len(line) > most:
        return fit_post_text("", last.url, most)
    prose = text.rstrip()
    if grapheme_len(prose) + 1 + grapheme_len(line) > most:
        prose = leading_sentences(prose, most - grapheme_len(line) - 1)
    return f"{prose} {line}".strip()
