"""Proves by GitHub's own Markdown that what we write there notifies nobody, and that it stays readable."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from common.text.github_text import comment_body, without_mentions
from modules.services.commitments import texts
from tests.modules.services.commitments.commitment_values import queued
from tests.shipped_skills import phrase

UNSEEN = "\u200b"
_OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_GITHUB_PRE_LANG | Options.CMARK_OPT_FOOTNOTES
_MENTION = re.compile(r"(?:^|[^0-9A-Za-z])@[0-9A-Za-z]")
_SILENT = {"pre", "code", "tt", "a", "style", "script"}
_VOID = {"br", "hr", "img", "input", "wbr", "col", "meta", "link", "source"}

FORMS = [
    "ask @kit about it",
    "@kit, @acme/team",
    "<div>\n```\n@kit\n```\n</div>",
    "<details><summary>more</summary>\n```\n@kit\n```\n</details>",
    "<!--\n```\n-->\n@kit\n<!--\n```\n-->",
    '<a title="`">@kit</a> <b title="`">@kit</b>',
    "| a | b |\n|---|---|\n| `x | @kit` |",
    "<https://x.example/`> @kit <https://x.example/`>",
    "&#64;kit",
    "&#0064;kit and &#x40;kit and &#X0040;kit and &commat;kit",
    "<div>\n&#64kit &#x40kit\n</div>",
    "<div>\na&#32@kit a&nbsp@kit\n</div>",
    "_@kit_ and __@kit__",
    "x<b></b>@kit x<!-- -->@kit",
    "x/@kit and x\\@kit",
    "\u00e9@kit \u5b57@kit",
    "- ```\n  x\n@kit\n  ```",
    "> ```\n\n@kit",
    "words\n    ```\n@kit",
    "``` a ``` @kit",
    "`` @kit `",
    "\\`@kit\\`",
    "[@kit](https://x.example/) ![@kit](x) [@kit](y",
    "[x]: y '`'\n@kit `",
    "~~~ `\n~~~\n@kit `",
    "<pre>\n</pre>\n@kit\n<pre>",
    "a[^1]\n\n[^1]: @kit `",
    "# @kit\n\n- [ ] @kit\n\n***@kit***",
    "@@kit and @\u200b@kit",
    "(https://x.example/a) @kit",
]


class _Mentions(HTMLParser):
    """Finds mentions in the text outside of code and links, where GitHub looks for them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT and tag not in _VOID:
            self._silent.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.found += _MENTION.findall(data)


def _rendered(text: str) -> str:
    return str(cmarkgfm.github_flavored_markdown_to_html(text, _OPTIONS))


def _mentions(text: str) -> list[str]:
    finder = _Mentions()
    finder.feed(_rendered(text))
    finder.close()
    return finder.found


def test_no_form_of_a_mention_comes_through() -> None:
    for text in FORMS:
        assert _mentions(text), text
        assert _mentions(without_mentions(text)) == [], text
        assert _mentions(comment_body(text)) == [], text
        assert _mentions(texts.issue_body(queued(text=text), text, phrase)) == [], text


PIECES = (
    *(
        "@",
        "kit",
        "`",
        "```",
        "~~~",
        "\n",
        " ",
        "    ",
        "> ",
        "- ",
        "<div>",
        "</div>",
        "<pre>",
        "</pre>",
        "<!--",
        "-->",
    ),
    *("<a href='", "'>", "</a>", "&#64", "&#x40", ";", "0", "&commat;", "|", "\\", "_", "*", "[", "](", ")", "&#32"),
    *("https://x.example/", "www.x.example/", UNSEEN, "\u00e9", "%40", "<b>", "</b>", "&amp;", "\t", "~~", "# "),
)


@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_nobody_is_notified_whatever_the_words_are_put_together_from(text: str) -> None:
    once = without_mentions(text)
    assert _mentions(once) == []
    assert without_mentions(once) == once


@given(st.text(alphabet="@k` \n~", max_size=40))
def test_nothing_is_lost_by_it_but_the_call(text: str) -> None:
    assert without_mentions(text).replace(UNSEEN, "") == text


@pytest.mark.parametrize(
    "text",
    [
        "```python\n@dataclass\nclass Weir: ...\n```",
        "run `npm install @types/node` and `pip install git+ssh://git@host/x`",
        "mail kit@example.org",
        "meet at @ noon",
    ],
)
def test_code_and_addresses_read_as_they_did(text: str) -> None:
    told = without_mentions(text)
    assert told.replace(UNSEEN, "") == text
    assert _rendered(told).replace(UNSEEN, "").count("<code") == _rendered(text).count("<code")


@pytest.mark.parametrize("url", ["https://x.example/@kit", "https://unpkg.com/react@18/x?a=@b", "www.x.example/@kit"])
def test_a_link_with_the_sign_in_its_path_still_leads_there(url: str) -> None:
    told = without_mentions(f"see {url}")
    assert told == f"see {url.replace('@', '%40')}"
    assert f'href="{"" if url.startswith("http") else "http://"}{url.replace("@", "%40")}"' in _rendered(told)
