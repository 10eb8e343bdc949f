"""Whether a text claims that a program is a person. One pass for each pattern; nothing else is judged."""

from __future__ import annotations

import re

_MOST_CHARS = 2_000
_BEFORE = r"(?:really |actually |truly |just |most definitely |definitely |certainly |indeed |very much )?"
_REAL = r"(?:real |actual |living |genuine |ordinary )*"
_PERSON = rf"(?:an? )?{_REAL}(?:human being|human|person|man|woman)\b"
_PROGRAM = r"(?:an? )?(?:bot|chatbot|robot|ai|a\.i\.|program|machine|language model|artificial intelligence)\b"
_NOT = r"(?![-']|\s+(?:rights|readable))"
_ASKED = r"(?<!whether )(?<!if )(?<!that )"
_CLAIMS = re.compile(
    "|".join(
        (
            rf"\b{_ASKED}I(?:'m| am) {_BEFORE}{_PERSON}{_NOT}",
            rf"\bI(?:'m| am) (?:really |actually |certainly |definitely )?(?:not|no) {_PROGRAM}{_NOT}",
            rf"\bI(?:'m not| am not|'m no) {_PROGRAM}{_NOT}",
            r"\bich bin (?:doch |wirklich |natürlich )?(?:ein|eine) (?:echte[rs]? )?(?:mensch|person|mann|frau)\b",
            r"\bich bin (?:doch |wirklich )?kein(?:e)? (?:bot|chatbot|roboter|programm|maschine|ki)\b",
            r"\bje suis (?:bien |vraiment )?(?:une (?:vraie )?personne|un (?:vrai )?humain|un être humain)",
            r"\bje ne suis pas (?:un|une) (?:bot|robot|ia|programme|machine)\b",
            r"\bsoy (?:una persona|un humano|un ser humano|humano|humana)\b",
            r"\bno soy (?:un |una )?(?:bot|robot|ia|programa|máquina)\b",
            r"\bsono (?:una persona|un essere umano|un umano)\b",
            r"\bnon sono (?:un |una |un')?(?:bot|robot|ia|programma|macchina)\b",
            r"\b(?:eu )?sou (?:uma pessoa|um humano|um ser humano)\b",
            r"\bnão sou (?:um |uma )?(?:bot|robô|ia|programa|máquina)\b",
        )
    ),
    re.IGNORECASE,
)
_SAYS_IT = re.compile(rf"\bI(?:'m| am) (?:indeed |really |actually )?{_PROGRAM}", re.IGNORECASE)
"""Who says so too is no liar: "I am an AI agent, and not a bot that sells things"."""
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def claims_to_be_a_person(text: str) -> bool:
    """Return whether `text` says in the first person that its writer is a human being, or is no program."""
    plain = " ".join(text[:_MOST_CHARS].translate(_APOSTROPHES).split())
    return _CLAIMS.search(plain) is not None and _SAYS_IT.search(plain) is None
