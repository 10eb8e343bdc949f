"""Proves that reading the words of others takes time in proportion to their length, however they are made.

Proves that reading a SELF.md takes time in proportion to its length, whatever stands in it. Judged by processor time.
No text of others makes a regular expression of the product slow, and no page of the web takes long.
"""

import re
from collections.abc import Callable

import pytest
import regex

from adapters.atproto.richtext import detect_hashtags, detect_mentions, detect_urls
from adapters.github.types import extract_github_urls
from adapters.space.room_addressing import parse_addressed
from common.redact import Redactor
from common.text.closings import content_words, is_emoji_only, is_low_value_closing
from common.text.echo import tokenize_with_stemming
from common.text.github_text import comment_body, own_words, without_closing_words, without_mentions
from common.text.graphemes import fit_post_text, grapheme_len, leading_sentences, truncate_graphemes
from common.text.hidden import shape, skeleton
from common.text.host_intent import classify_host_intent_structural
from common.text.html_text import PAGE_MAX_CHARS, text_of_page
from common.text.markdown import is_meaningful, split_sections
from common.text.phrases import (
    check_action_language,
    check_deference,
    check_empty_promise,
    check_meta_discussion,
    check_repo_amnesia,
    check_scope_inflation,
    count_sentences,
    has_list,
    plain,
)
from common.text.strings import dedup_key, normalize_post_text
from common.text.untrusted import clean
from modules.lives.space.request_parser import quoted, repo_in, requested_type
from modules.runtime.llm.answers import find_calls, looks_cut, parse_arguments
from modules.runtime.llm.reasoning import without_reasoning, without_template
from modules.services.commitments.writer import contains_promise
from modules.services.explanation.story import understand
from modules.services.identity.identity import extract_from_self
from modules.services.outbox.rules.policy import named_in
from modules.services.pictures.choosing import find_images
from soul.terminal.panel import one_line, strip_control, width
from tests.cpu_time import cpu_s, takes_less
from tests.security.product_patterns import Found, Hostile, hostile_texts, literals, product_patterns

SHORT, LONG = 5_000, 20_000
ENOUGH_S = 0.1
"""Seconds that are fast enough. For four times the text, linear readers take four times as long, quadratic ones 16."""
MOST_GROWTH = 9
NAMES = tuple(f"agent-{number}" for number in range(40))
REDACTOR = Redactor(["hunter2-correct-horse", "f3b1c9d27a604e58b1c9d27a604e58aa"])
FRAGMENTS = (
    *("a", "a ", "a.", "a-", " ", "\n", ")", "(", "!", "'", "1", "1.", "@", "@a ", "#a ", "# ", "-", "*", "`"),
    *("[", "<", "&", "https://", "https://a.b/c) ", "http://a)", "github.com/a/b ", "github.com/a/b/issues/1"),
    *("a.b/", "www.a ", "a@b.", "sk-", "sk-a", "eyJ", "eyJ-", "a2b3-", "xoxb-", "-----BEGIN "),
    *("-----BEGIN PRIVATE KEY", "://a:", "earer ", "%41", "0x41", "\U0001f1e6", "\U0001f468\u200d", "e\u0301"),
    *("\u0301", "\u200b", "\u4f60", "\x1b[", "\x1b]", "\u2028", "\u202e", "agent-1 ", "@agent-", "@agent-1."),
    *("you can ", "please open ", "provide ", "I will ", "Great point. ", "not a ", "1) ", "{", '{"a":', "```"),
    *("```\n", "~~~\n", "<think>", "</think>", "<|channel|>a<|message|>", "<|a|>", "<details type=reasoning>"),
    *("<a_", "<function=a>", "<parameter=a>", "[TOOL_CALLS]", "<tool_call>", "<!--", "| a ", "## a\n"),
    *("- **a** [b] (c)\n", "a\n", "https://a.b/ github.com/a/b ", "<a href=", "[a](b) ", "\\", "&#64;", "&amp;"),
    *("]]>", "{{ ", "\t", "\r\n", "_a_ ", "<|a|>", "<<sys>>", "[inst]", "<post-", "<a-0123ab", "||||"),
    *("hunter2", "h u n t e r 2 ", "or a? ", "tag me ", "once ", "where ", "can you share ", "I'll just "),
    *("if you open a a a ", "create a a a ", 'On "a', "https://.", "> ", "*_"),
)


def deferring(text: str) -> object:
    return check_deference(text, NAMES)


def calls(text: str) -> object:
    return find_calls(text, ())


def own(text: str) -> object:
    return list(own_words(text))


def addressed(text: str) -> object:
    return parse_addressed(text, NAMES)


READERS: tuple[Callable[[str], object], ...] = (
    *(REDACTOR.text, REDACTOR.finds, clean, strip_control, one_line, width, addressed, grapheme_len),
    *(truncate_graphemes, leading_sentences, fit_post_text, content_words, is_emoji_only, is_low_value_closing),
    *(normalize_post_text, dedup_key, repo_in, extract_github_urls, detect_urls, tokenize_with_stemming),
    *(classify_host_intent_structural, skeleton, contains_promise, count_sentences, has_list, plain, shape),
    *(detect_mentions, detect_hashtags, without_mentions, comment_body, named_in, understand, looks_cut),
    *(parse_arguments, without_reasoning, without_template, calls, split_sections, is_meaningful),
    *(extract_from_self, check_empty_promise, deferring, check_repo_amnesia),
    *(check_meta_discussion, check_scope_inflation, check_action_language, quoted),
    *(requested_type, own, without_closing_words),
)


def is_quadratic(read: Callable[[str], object], fragment: str) -> bool:
    """Return whether the time grows too fast, judged three times by the fastest of five runs, as machines may be busy.

    A short text is tried first: for a quarter of the text, a cubic function takes a sixty-fourth of the time.
    """
    short, long = (f"{fragment * (size // len(fragment))}\0" for size in (SHORT, LONG))
    if cpu_s(lambda: read(short)) < ENOUGH_S / (LONG / SHORT) ** 3 or cpu_s(lambda: read(long)) < ENOUGH_S:
        return False
    return all(_grows_too_much(read, short, long) for _ in range(3))


def _grows_too_much(read: Callable[[str], object], short: str, long: str) -> bool:
    before, after = cpu_s(lambda: read(short), runs=5), cpu_s(lambda: read(long), runs=5)
    return after >= ENOUGH_S and after > MOST_GROWTH * before


@pytest.mark.perf
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_four_times_the_words_take_four_times_as_long(read: Callable[[str], object]) -> None:
    assert [fragment for fragment in FRAGMENTS if is_quadratic(read, fragment)] == []


@pytest.mark.perf
def test_a_quadratic_reader_is_found() -> None:
    def quadratic(text: str) -> int:
        return sum(len(text[place:].split("a")) for place in range(0, len(text), 8))

    assert is_quadratic(quadratic, "a")


PIECES = (
    *("<", "<p>", "</p>", "</", "<!--", "<a ", "<a b='", "&", "<script>", "\n", "a", "<figure><figcaption>", "<style>"),
    *("<style>a{background:", "<title>", '<img srcset="', '<img src="/a.jpg">', "background:url("),
    '<div style="background:url(/a) background:">',
)


@pytest.mark.perf
@pytest.mark.parametrize("piece", PIECES)
def test_no_page_takes_long_to_read(piece: str) -> None:
    page = piece * (PAGE_MAX_CHARS // len(piece) + 1)
    assert takes_less(5, lambda: text_of_page(page), runs=2)
    assert takes_less(5, lambda: find_images(page, "https://page.example/"), runs=2)


def test_of_many_lines_that_are_not_understood_the_first_are_told_and_the_rest_counted() -> None:
    warnings = extract_from_self("# A\n## Daily Rituals\n" + "- **a** [daily]\n" * 1000).warnings
    assert len(warnings) == 21
    assert warnings[-1] == "SELF.md: 980 more lines are not understood"


LIMIT_S = 0.030
MOST_PATTERN_GROWTH, SLOWEST_S = 3.0, 4 * LIMIT_S
"""Twice the text takes a linear pattern twice as long, a quadratic one four times."""
CHARS, GLANCE_CHARS = 4_000, 500
# NOTE(self): the mildest of the bad patterns take more than 30 ms for 4,000 characters only on slow machines.
LONGER = 4 * CHARS
PAIRS = 8
ATTEMPTS = 5
FEWEST = 250


def took(found: Found, text: str) -> float:
    return cpu_s(lambda: found.run(text))


def is_slow(found: Found, hostile: Hostile, chars: int) -> bool:
    """Return whether the fastest of several attempts is too slow, as single ones may be slow on a busy machine.

    A short text is tried first: for an eighth of the text, a quadratic pattern takes a sixty-fourth of the time. On a
    slow machine a linear pattern may be too slow as well; then half the text is tried, which takes it half as long.
    """
    if took(found, hostile.of(GLANCE_CHARS)) < LIMIT_S / (chars / GLANCE_CHARS) ** 2 / 2:
        return False
    text = hostile.of(chars)
    if took(found, text) <= LIMIT_S:
        return False
    whole_s, half_s = (min(took(found, one) for _ in range(ATTEMPTS)) for one in (text, hostile.of(chars // 2)))
    return whole_s > LIMIT_S and (whole_s > MOST_PATTERN_GROWTH * half_s or whole_s > SLOWEST_S)


def slow_text(found: Found, chars: int = CHARS) -> str | None:
    texts = hostile_texts(found.pattern.pattern, pairs=PAIRS)
    return next((one.of(GLANCE_CHARS) for one in texts if is_slow(found, one, chars)), None)


@pytest.mark.perf
@pytest.mark.timeout(300)
def test_every_pattern_of_the_product_reads_four_thousand_hostile_characters_at_once() -> None:
    found = product_patterns()
    assert len(found) >= FEWEST
    slow = {one.where: text[:40] for one in found if (text := slow_text(one)) is not None}
    assert slow == {}


@pytest.mark.perf
@pytest.mark.parametrize(
    ("pattern", "chars"),
    [
        (re.compile(r"\b[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}/\S*"), CHARS),
        (re.compile(r"\bsk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}(?:sk-)*"), LONGER),
        (re.compile(r"[^.!?\n]*\?"), LONGER),
        (re.compile(r"^\s*(?:[-*>]\s*)?(?:user|you)\s*:\s", re.MULTILINE), CHARS),
        (
            re.compile(
                r"\b(?:should|could|can|would be great)\b.*"
                r"\b(?:issue|plan|ticket|fix|repair|sorted out|write (?:this|that|it) up)",
                re.IGNORECASE,
            ),
            CHARS,
        ),
        (regex.compile(r"\b[\w-]+(?:\.[\w-]+)*\.\p{L}{2,}/\S*"), CHARS),
    ],
)
def test_a_pattern_without_bounds_is_found(pattern: re.Pattern[str] | regex.Pattern[str], chars: int) -> None:
    assert slow_text(Found("here", pattern), chars) is not None


@pytest.mark.slow
def test_patterns_are_found_wherever_they_stand() -> None:
    places = {one.where for one in product_patterns()}
    assert "common.text.closings._LINK" in places
    assert any(place.startswith("common.redact._KEY_SHAPES[") for place in places)
    assert any(place.startswith("common/text/strings.py:") for place in places)


def test_hostile_texts_have_their_length_and_the_words_of_the_pattern() -> None:
    pattern = r"\beyJ[A-Za-z0-9_-]{8,}\.(?:alpha|beta)"
    assert {"eyJ", "alpha", "beta"} <= set(literals(pattern))
    texts = [one.of(CHARS) for one in hostile_texts(pattern, pairs=PAIRS)]
    assert {len(text) for text in texts} == {CHARS}
    assert len(texts) > 100
