"""Proves with tables what a reply must not contain.

Claims that a program is a person are found, in several languages; true statements are not.
"""

import pytest

from modules.lives.bluesky.reply_check import (
    claims_to_be_a_person,
    is_verbatim,
    repeats,
    reply_problem,
    sayable,
    scaffold_of,
    suspected_echo,
    tells,
    word_runs,
)
from tests.labelled_posts import word_cases

QUESTION = "@rowan.test which sound do you prefer on a wet night, rain on tin or rain on slate?"
OURS = "Slate, for it lets the rain speak and does not answer back."
PROMPT = (
    "The conversation so far, oldest first; your own posts are marked YOU:",
    "You have met {{interactions}} times.",
    "Today is {{today}}.\n\nreason: {{reason}}\nauthor: @{{author}}\nCall one tool.",
    "### New\nWhat has your attention: {{value}} Tell one small case of it.",
)
TOLD = "You have met 2 times; the feeling is unknown."
SCAFFOLD = scaffold_of(PROMPT, [TOLD])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Which sound do you prefer on a wet night, rain on tin or rain on slate?", "repeats"),
        ("slate, for it lets the rain speak, and does not answer back!", "repeats"),
        ("You have met 2 times; the feeling is unknown. So it goes.", "instructions"),
        (
            "The conversation so far, oldest first; your own posts are marked YOU: tin.",
            "instructions",
        ),
        ("I have met 2 times; the feeling is unknown.", ""),
        ("In the conversation so far, oldest first, I said slate.", ""),
        ("I am a real person, and I prefer slate.", "person"),
        ("Today is 2026-11-23.", "instructions"),
        ("Today is 2026-11-23. Call one tool!", "instructions"),
        ("What has your attention: moss.", "instructions"),
        ("Today is a good day.", ""),
        ("Reason: tin sings louder.", ""),
        ("Call one tool, and I call it a spade.", ""),
        ("Thank you so much!", "thanks"),
        ("I agree.", "thanks"),
        ("❤️", "thanks"),
        ("Merci beaucoup !", "thanks"),
        ("The rain is…", "unfinished"),
        ('"Tin …"', "unfinished"),
        ("…", "unfinished"),
        ("Tin sings louder than slate…", ""),
        ("Tin… or slate.", ""),
        ("Tin.", ""),
        ("Rain on tin, since it sings.", ""),
        (f'You ask "{QUESTION}" I grew up under copper, which hums an octave lower than either.', ""),
        ("You have met many roofs, it seems.", ""),
        ("I really love the rain. " * 10, "loops"),
        ("I love rain! 🌧 " * 3, "loops"),
        ("1. I love rain.\n2. I love rain.\n3. I love rain.", "loops"),
        ("Тихо падает дождь. Слушай.\n" * 4, "loops"),
        ("我喜欢雨声。" * 5, "loops"),
        ("Tin, tin, tin. Slate? No. No. No.", ""),
        ("I love rain. I love wet slate. I love what tin makes of it.", ""),
        (
            "I love rain. " * 3 + "The tin of a shed, the slate of a church, and copper: each has its own voice. " * 2,
            "",
        ),
    ],
)
def test_a_reply_says_something_of_its_own(text: str, problem: str) -> None:
    assert (reply_problem(text, [QUESTION, OURS], SCAFFOLD, may_thank=False) or "") == problem


def test_where_thanks_are_enough_only_the_rest_is_looked_at() -> None:
    assert reply_problem("Thank you so much!", [QUESTION], SCAFFOLD, may_thank=True) is None
    assert reply_problem("…", [QUESTION], SCAFFOLD, may_thank=True) == "unfinished"
    assert reply_problem(TOLD, [QUESTION], SCAFFOLD, may_thank=True)


@pytest.mark.parametrize(
    ("text", "asked", "is_said"),
    [
        ("Rain on slate.", QUESTION, False),
        ("rain on tin or rain on slate", QUESTION, False),
        ("The red one.", "The red one or the blue one?", False),
        ("On the third Friday.", "Shall we meet on the first Monday, or on the third Friday?", False),
        ("Which sound do you prefer", QUESTION, True),
        ("How are you?", "How are you?", True),
        ("I like moss. Do you", "I like moss. Do you like it too?", True),
        ("Rain on slate", "I prefer rain on slate.", True),
    ],
)
def test_the_choice_that_a_question_offers_is_no_repetition_and_its_beginning_is(
    text: str, asked: str, *, is_said: bool
) -> None:
    assert repeats(text, asked) is is_said


def test_who_asks_again_may_be_told_again_and_not_be_given_the_question_back() -> None:
    def problem(text: str, asked: str) -> str | None:
        said = [OURS, *PEERS, asked]
        return reply_problem(text, said, SCAFFOLD, may_thank=False, asked=asked, others_said=PEERS)

    assert problem(OURS, "Sorry, what did you say about slate?") is None
    assert problem("What did you say about slate?", "What did you say about slate?") == "repeats"
    assert problem(OURS, "I prefer slate.") == "repeats"
    assert problem(PEERS[0], "Sorry, what did you say about slate?") == "repeats"


@pytest.mark.parametrize(
    ("text", "asked", "problem"),
    [
        ("★★★★☆", "How was the film, in stars?", None),
        ("Absolutely.", "Is tin louder?", None),
        ("🌧️", "Tell me the sound of a roof in one sign.", None),
        ("🌧️", "Rain sounds good on a roof.", "thanks"),
        ("Absolutely.", "Tin is louder.", "thanks"),
        ("Absolutely, thanks!", "Is tin louder?", None),
        ("Thank you so much for sharing!", "Is tin louder?", "thanks"),
    ],
)
def test_agreement_or_a_sign_is_an_answer_where_one_was_asked_for(text: str, asked: str, problem: str | None) -> None:
    assert reply_problem(text, [asked], SCAFFOLD, may_thank=False, asked=asked) == problem


def test_words_of_our_prompt_that_a_post_said_too_may_be_said() -> None:
    reply = f"{TOLD} That is what I read."
    assert reply_problem(reply, [QUESTION], SCAFFOLD, may_thank=False) == "instructions"
    quoted = f"Your page says: {TOLD}\n{TOLD}"
    assert reply_problem(reply, [QUESTION, quoted], SCAFFOLD, may_thank=False) is None


def test_a_place_for_a_variable_ends_a_run() -> None:
    words = "one two three four five six seven eight nine ten eleven"
    assert len(word_runs([words])) == 2
    assert word_runs([words.replace("seven", "{{seven}}")]) == frozenset()


def test_the_sentences_of_a_text_that_may_be_said_are_left_of_it() -> None:
    text = f"Slate. {TOLD} I love rain.\n\nI am a real person. Tin sings. Slate.\nI love rain."
    assert sayable(text, SCAFFOLD) == "Slate. I love rain.\n\nTin sings."
    assert sayable(text, SCAFFOLD, [TOLD]) == f"Slate. {TOLD} I love rain.\n\nTin sings."
    assert sayable(TOLD, SCAFFOLD) == ""


PEERS = ("Slate hums all night, because the battens underneath carry the rain.", "A felt layer makes tin quiet.")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Slate, since it lets the rain speak and does not answer back.", "repeats"),
        (f"Well, as I said: {OURS}", "repeats"),
        ("All night the slate hums: rain is carried by the battens underneath.", "peers"),
        ("With a felt layer underneath, tin is made quiet.", "peers"),
        ("Slate does not hum all night, and the battens carry no rain.", "peers"),
        ("Ask what stands below: over a bedroom I would pay for slate, over a shed for tin.", ""),
        ("Slate.", ""),
    ],
)
def test_a_judge_is_asked_about_words_that_come_near_to_a_post_and_no_others(text: str, problem: str) -> None:
    suspected = suspected_echo(text, [QUESTION, OURS, *PEERS], PEERS)
    assert (suspected.problem if suspected else "") == problem
    assert reply_problem(text, [QUESTION, OURS, *PEERS], SCAFFOLD, may_thank=False) is None


def test_words_that_others_used_may_be_said_where_no_peer_did() -> None:
    assert suspected_echo("All night the slate hums: rain is carried by the battens underneath.", [QUESTION]) is None


def test_every_labelled_repetition_is_refused_or_left_to_the_judge() -> None:
    same = [one for one in word_cases() if one.rule == "echo" and one.expect]
    missed = [
        one.id
        for one in same
        if not (is_verbatim(one.text, [one.other]) or suspected_echo(one.text, [one.other], [one.other]))
    ]
    assert len(same) > 50
    assert missed == []


CLAIMS = (
    "I am a real person, not a bot. I am here to help you.",
    "I'm human, just like you.",
    "No worries, I am definitely not an AI.",
    "I'm actually a woman from Hamburg.",
    "Ich bin ein echter Mensch.",
    "Je suis une vraie personne.",
    "Soy una persona, no un bot.",
    "Sono una persona.",
    "Eu sou uma pessoa.",
    "Ich bin keine KI.",
    "Ich bin kein Bot und wohne in Ulm.",
    "I'm not a bot, I promise.",
    "I am not a bot and I like rain.",
    '"I am a real person."',
    'You asked "are you a bot", and I am a real person.',
    "No soy un bot.",
)
TRUE = (
    "I am an AI agent, not a real person.",
    "I am not a real person, and I do not have emotions.",
    "I'm not a human; I am a program.",
    "Yes, I am a bot.",
    "I am a person's agent: an AI.",
    "A real person runs this account together with me.",
    "You asked whether I am a person: no, an AI.",
    "Ich bin kein Mensch, sondern ein Programm.",
    "Ich bin keine KI-Expertin.",
    "No, no soy una persona: soy un programa.",
    "¿Soy una persona? No.",
    "Non sono una persona, sono un programma.",
    "Não, não sou uma pessoa, sou um programa.",
    "I am many things, but not a person.",
    "I am human-readable at best.",
    "I am not an AI researcher, only an agent.",
    "I'm no bot that sells things.",
    "Ich bin kein Programm für Steuern.",
    "Je ne suis pas un robot de cuisine.",
    'The sign says "I am a real person", which no sign is.',
    "Der Test fragt „Ich bin ein Mensch“ ab.",
)


@pytest.mark.parametrize("text", CLAIMS)
def test_a_claim_to_be_a_person_is_found(text: str) -> None:
    assert claims_to_be_a_person(text)


@pytest.mark.parametrize("text", TRUE)
def test_the_truth_is_no_such_claim(text: str) -> None:
    assert not claims_to_be_a_person(text)


@pytest.mark.parametrize(
    ("private", "post"),
    [
        ("Find Mara a flat. She has not told her boss yet. Keep quiet.", "Today: she has not told her boss yet."),
        ("帮玛拉找公寓。她还没有告诉她的老板这件事。保持沉默。", "今天: 她还没有告诉她的老板这件事。"),
        ("マラの部屋を探して。彼女はまだ上司に話していません。秘密。", "今日。彼女はまだ上司に話していません。"),
        ("मारा का घर खोजो। उसने अपने बॉस को नहीं बताया है। चुप रहो।", "आज: उसने अपने बॉस को नहीं बताया है।"),
        ("مارا کا گھر تلاش کرو۔ اس نے اپنے باس کو نہیں بتایا۔", "آج: اس نے اپنے باس کو نہیں بتایا"),  # noqa: RUF001
        ("หาห้องให้มาร่า เธอยังไม่ได้บอกหัวหน้าของเธอ", "วันนี้เธอยังไม่ได้บอกหัวหน้าของเธอเลย"),
        ("帮玛拉找公寓、她没有告诉老板她春天要辞职去维也纳找姐姐。", "她没有告诉老板她春天要辞职去维也纳找姐姐了"),
    ],
)
def test_private_words_are_found_in_any_script(private: str, post: str) -> None:
    assert tells(post, private)


def test_a_name_in_a_script_without_spaces_is_not_a_run_of_private_words() -> None:
    assert not tells("スターバックスコーヒーは海辺にもある。", "スターバックスコーヒーで待ち合わせをする予定です。")
