"""Proves which verdicts on the scenarios of a page are accepted."""

from modules.lives.tasks.scenarios import ScenarioReport, Verdict
from modules.runtime.llm.dialect import ToolCall
from tests.shipped_skills import SHIPPED

RUN = ToolCall("1", "run", {"command": "python3 roman.py 4"})
PAGE = "# Scenarios\n\n## A visitor converts **4**\n\nThey see IV.\n\n- A visitor converts 9\n"


def test_a_verdict_names_a_whole_line_of_the_page_and_needs_a_run_since_the_one_before() -> None:
    report, earlier = ScenarioReport(SHIPPED, PAGE), [RUN]

    def is_taken(name: str, verdict: Verdict = "passes") -> bool:
        told = ToolCall("2", "scenario_verdict", {"scenario": name, "verdict": verdict, "saw": "IV"})
        answer = report.answer(told, earlier)
        earlier.append(told)
        return not answer.is_error

    assert not any(map(is_taken, ("a", "visitor converts 4", "A visitor", "#", "They see IV. - A visitor")))
    assert is_taken("A visitor converts 9", "cannot_be_tried")
    assert is_taken("a visitor converts 4")
    assert not is_taken("A visitor converts 9")
    assert not is_taken("a visitor converts 4", "fails")
    earlier.append(RUN)
    assert is_taken("A visitor converts 9", "fails")
    assert [one[1] for one in report.found.values()] == ["fails", "passes"]


async def test_a_run_does_not_end_before_it_was_told_which_verdict_was_refused() -> None:
    report = ScenarioReport(SHIPPED, PAGE)
    for name in ("A visitor converts 4", "A visitor converts 9"):
        report.answer(ToolCall("2", "scenario_verdict", {"scenario": name, "verdict": "passes", "saw": "IV"}), [RUN])
    assert await report.check()
    assert not await report.check()
