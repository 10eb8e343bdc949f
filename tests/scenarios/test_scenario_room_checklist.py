"""What an owner may expect of the agent space, item by item, and the tests that show it.

| item | what is expected | shown by |
|---|---|---|
| 1 | agents find the room by themselves, or by SPACE_URL; both makes of agents mix | discovery, interop, return |
| 2 | the server is killed and started again: all are back once, and talk, within 90 s | return, interop |
| 3 | an opinion: several answers, then quiet; the host opens everyone again | talk |
| 4 | a request: one issue with a body, told once, within 30 s | request, commitment |
| 5 | a mind that misbehaves; a repository that is not there | request |
| 6 | "did you do it?": the link, or urgency; never a second issue | request |
| 7 | one is addressed: it goes first, the others are not silenced | talk |
| 8 | without GitHub nothing is made there | request |
| 9 | the pace: by the SOUL, seen by its owner, edited live | talk |
| 10 | every N-th message is remembered; what was learned is told | talk |
| 11 | a restart, or a kill, repeats nothing | request, commitment, crash |
| 12 | the record turns over, and a long life heaps up nothing | long life, record |

`SHOWN` has them by name, and a name that no longer stands there fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TALK, REQUEST = "tests/scenarios/test_scenario_room_talk.py", "tests/scenarios/test_scenario_room_request.py"
RETURN, COMMITMENT = "tests/soul/test_room_return.py", "tests/soul/test_room_commitment.py"
LAN, FOUND = "tests/adapters/space/test_space_discovery_lan.py", "tests/adapters/space/test_space_discovery.py"
INTEROP, CRASH = "tests/interop/test_interop_rooms.py", "tests/crash/test_crash_commitments.py"
RECORD, LONG = "tests/adapters/space/test_space_chatlog.py", "tests/soul/test_room_long_life.py"

SHOWN: dict[int, tuple[tuple[str, str], ...]] = {
    1: (
        (LAN, "test_our_client_finds_our_server_across_the_network"),
        (LAN, "test_a_client_of_the_first_make_finds_our_server_with_its_one_question"),
        (FOUND, "test_the_address_that_the_owner_set_is_used_as_it_is"),
        (INTEROP, "test_a_javascript_member_and_ours_talk_claim_and_end_in_our_room"),
        (INTEROP, "test_our_member_joins_a_javascript_room_hears_its_past_and_speaks"),
        (RETURN, "test_after_a_kill_of_the_room_five_souls_are_back_within_90_seconds_and_answer_the_host"),
    ),
    2: (
        (RETURN, "test_after_a_kill_of_the_room_five_souls_are_back_within_90_seconds_and_answer_the_host"),
        (INTEROP, "test_our_member_is_back_after_a_javascript_room_was_killed_and_started_again"),
    ),
    3: (
        (TALK, "test_several_answer_an_opinion_until_enough_is_said_and_the_hosts_next_words_open_everyone_again"),
        (TALK, "test_who_declines_leaves_no_trace_of_typing"),
    ),
    4: (
        (REQUEST, "test_of_four_souls_one_opens_the_issue_in_full_and_tells_it_once"),
        (COMMITMENT, "test_a_request_becomes_an_issue_and_a_commitment_is_taken_up_without_waiting_for_a_timer"),
    ),
    5: (
        (REQUEST, "test_whatever_the_owners_mind_does_the_host_gets_the_issue"),
        (REQUEST, "test_the_owner_that_talks_about_it_is_asked_again_and_then_commitments"),
        (REQUEST, "test_a_repository_that_does_not_exist_is_tried_nine_times_and_the_room_hears_of_no_failure"),
        (REQUEST, "test_a_request_whose_repository_comes_back_is_kept_once_and_in_full"),
    ),
    6: (
        (REQUEST, "test_asked_whether_it_is_done_the_owner_gives_the_link_and_makes_nothing_again"),
        (REQUEST, "test_asked_whether_it_is_done_while_nobody_acts_the_owner_is_pressed_and_acts"),
    ),
    7: ((TALK, "test_whoever_is_addressed_is_told_to_go_first_and_nobody_else_is_silenced"),),
    8: (
        (REQUEST, "test_without_github_a_soul_says_so_once_and_makes_nothing"),
        (REQUEST, "test_souls_without_github_leave_the_work_to_the_one_who_has_it"),
    ),
    9: ((TALK, "test_a_soul_paces_itself_and_its_owner_sees_it_and_has_the_last_word"),),
    10: ((TALK, "test_every_nth_message_is_remembered_and_what_was_learned_is_told_to_the_room"),),
    11: (
        (REQUEST, "test_a_soul_that_comes_back_repeats_nothing_that_was_asked_before"),
        (COMMITMENT, "test_a_soul_killed_between_its_commitment_and_its_word_opens_one_issue_and_tells_it_once"),
        (CRASH, "test_a_process_killed_at_random_keeps_every_commitment_once_and_tells_it_once"),
    ),
    12: (
        (LONG, "test_a_long_talk_leaves_a_soul_as_it_was_and_no_word_is_said_twice"),
        (RECORD, "test_a_full_part_is_put_aside_and_five_are_kept"),
        (RECORD, "test_a_rotation_killed_at_any_step_is_finished_by_the_next_start"),
    ),
}


@pytest.mark.parametrize("item", SHOWN, ids=str)
def test_what_shows_an_item_stands_where_it_is_said_to(item: int) -> None:
    for path, name in SHOWN[item]:
        assert f"def {name}(" in (ROOT / path).read_text()


def test_no_item_is_forgotten() -> None:
    assert list(SHOWN) == list(range(1, 13))
