"""Tests of the wire format: every frame byte by byte, and that no frame of a stranger costs more than an error."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.space.types import (
    ERROR_PREFIXES,
    ActionDone,
    Claimed,
    History,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    LogEntry,
    Presence,
    PresenceList,
    Reflected,
    Refused,
    Said,
    ShuttingDown,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from adapters.space.wire import (
    BadJson,
    Rejected,
    Unreadable,
    decode_entry,
    decode_event,
    decode_request,
    encode_entry,
    encode_event,
    encode_value,
    entry_of,
    is_reserved,
    parse_json,
)
from tests.cpu_time import cpu_s
from tests.exploration import examples

AT = "2026-01-02T03:04:05.678Z"
WHO = ("ada", "ada-1")


def request(frame: dict[str, Any]) -> object:
    """Return what a room reads from a frame that `WHO` sends."""
    return decode_request(json.dumps(frame), *WHO, AT)


SUMMARY = IdentitySummary(("care",), ("maps",), "dry", ("sql",), "a draft", "curious")
SUMMARY_JSON = (
    '{"coreValues":["care"],"currentInterests":["maps"],"voice":"dry","expertise":["sql"],'
    '"recentWork":"a draft","soulEssence":"curious"}'
)

SERVER_FRAMES: list[tuple[str, Any, str]] = [
    (
        "join",
        Joined("sh-marvin", "m1", "10.1.0", ("social", "github")),
        '{"type":"join","name":"sh-marvin","id":"m1","version":"10.1.0","capabilities":["social","github"]}',
    ),
    ("join-bare", Joined("ada", "a", "1"), '{"type":"join","name":"ada","id":"a","version":"1"}'),
    ("leave", Left(*WHO, AT), f'{{"type":"leave","name":"ada","id":"ada-1","timestamp":"{AT}"}}'),
    (
        "chat",
        Said(*WHO, "Grüße 你好", AT, thread_id="t1"),
        f'{{"type":"chat","name":"ada","id":"ada-1","content":"Grüße 你好","timestamp":"{AT}","threadId":"t1"}}',
    ),
    (
        "chat-host",
        Said("host", "host-1", "hi", AT, addressed=("ada",)),
        f'{{"type":"chat","name":"host","id":"host-1","content":"hi","timestamp":"{AT}","addressed":["ada"]}}',
    ),
    ("typing", Typing(*WHO, AT), f'{{"type":"typing","name":"ada","id":"ada-1","timestamp":"{AT}"}}'),
    (
        "claim",
        Claimed(*WHO, "create_issue", "o/r", AT),
        f'{{"type":"claim","name":"ada","id":"ada-1","action":"create_issue","target":"o/r","timestamp":"{AT}"}}',
    ),
    (
        "state",
        StateChanged(*WHO, "acting", AT, detail="on it"),
        f'{{"type":"state","name":"ada","id":"ada-1","state":"acting","detail":"on it","timestamp":"{AT}"}}',
    ),
    (
        "action_result",
        ActionDone(*WHO, "a", "t", success=True, timestamp=AT, link="https://x"),
        (
            '{"type":"action_result","name":"ada","id":"ada-1","action":"a","target":"t","success":true,'
            f'"link":"https://x","timestamp":"{AT}"}}'
        ),
    ),
    (
        "reflection",
        Reflected(*WHO, "less is more", AT),
        f'{{"type":"reflection","name":"ada","id":"ada-1","summary":"less is more","timestamp":"{AT}"}}',
    ),
    (
        "workspace_state",
        WorkspaceProgress(*WHO, "ws", 2, 5, 3, 1, 0, AT),
        (
            '{"type":"workspace_state","name":"ada","id":"ada-1","workspace":"ws","planNumber":2,"totalTasks":5,'
            f'"completedTasks":3,"blockedTasks":1,"inProgressTasks":0,"timestamp":"{AT}"}}'
        ),
    ),
    ("error", Refused("Must join first"), '{"type":"error","message":"Must join first"}'),
    (
        "shutdown",
        ShuttingDown("Server shutting down", AT),
        f'{{"type":"shutdown","reason":"Server shutting down","timestamp":"{AT}"}}',
    ),
]


@pytest.mark.parametrize(("event", "text"), [row[1:] for row in SERVER_FRAMES], ids=[row[0] for row in SERVER_FRAMES])
def test_a_servers_frame_is_written_byte_by_byte_and_read_back(event: Any, text: str) -> None:
    assert encode_event(event) == text
    assert decode_event(text) == event
    assert decode_event(text.encode()) == event


def test_an_identity_is_passed_on_as_it_came() -> None:
    summary = f'{{"own":[null],"voice":7,"raw":1,{SUMMARY_JSON[1:]}'
    text = f'{{"type":"identity","name":"ada","id":"ada-1","summary":{summary},"timestamp":"{AT}"}}'
    for told, voice in ((summary, "dry"), (summary.replace('"voice":"dry"', '"voice":7'), "")):
        frame = text.replace(summary, told)
        identified = decode_request(frame, *WHO, AT)
        assert isinstance(identified, Identified)
        assert encode_event(identified) == encode_value(json.loads(frame))
        assert entry_of(identified).content == encode_value(json.loads(told))
        read = Identified(*WHO, replace(SUMMARY, voice=voice), AT)
        assert identified == read == decode_event(frame)
        assert "own" not in encode_event(read)


MEMBER_FRAMES: list[tuple[Any, str]] = [
    (Joined(*WHO, "1.0", ("social",), "", AT), '"version":"1.0","capabilities":["social"],"resume":"",'),
    (Said(*WHO, "hi", AT), '"content":"hi",'),
    (Typing(*WHO, AT), ""),
    (Identified(*WHO, SUMMARY, AT), f'"summary":{SUMMARY_JSON},'),
    (Claimed(*WHO, "a", "t", AT), '"action":"a","target":"t",'),
    (StateChanged(*WHO, "idle", AT), '"state":"idle",'),
    (
        ActionDone(*WHO, "a", "t", success=False, timestamp=AT, error="no"),
        '"action":"a","target":"t","success":false,"error":"no",',
    ),
    (Reflected(*WHO, "so", AT), '"summary":"so",'),
    (
        WorkspaceProgress(*WHO, "w", 0, 3, 1.5, 0, 0, AT),
        '"workspace":"w","planNumber":0,"totalTasks":3,"completedTasks":1.5,"blockedTasks":0,"inProgressTasks":0,',
    ),
]


@pytest.mark.parametrize(("event", "fields"), MEMBER_FRAMES, ids=[row[0].type for row in MEMBER_FRAMES])
def test_a_members_frame_is_signed_and_stamped_and_the_server_reads_it(event: Any, fields: str) -> None:
    text = encode_event(event)
    assert text == f'{{"type":"{event.type}","name":"ada","id":"ada-1",{fields}"timestamp":"{AT}"}}'
    assert decode_request(text, *WHO, AT) == (replace(event, timestamp="") if event.type == "join" else event)


def test_a_room_knows_who_speaks_and_when_whatever_a_frame_says_of_it() -> None:
    text = encode_event(Said("eve", "host-1", "hi", "2001-01-01T00:00:00.000Z", addressed=("bob",)))
    assert decode_request(text.replace("}", ',"replayed":true}'), *WHO, AT) == Said(*WHO, "hi", AT)
    assert decode_event(text.replace("}", ',"replayed":true}')) == Said(
        "eve", "host-1", "hi", "2001-01-01T00:00:00.000Z", addressed=("bob",)
    )
    assert isinstance(decode_request(text), Rejected), "nobody has joined"


def test_a_key_counts_only_as_it_is_written_on_the_wire() -> None:
    said = decode_event('{"type":"chat","name":"ada","content":"hi","thread_id":"t"}')
    assert said == Said("ada", "", "hi", "")
    present = decode_event(
        '{"type":"presence","agents":[{"name":"ada","joined_at":"x","identity":{"core_values":["x"]}}]}'
    )
    assert present == PresenceList((Presence("ada", "", "", "", "", IdentitySummary()),))


REFUSED = [
    ("[1", "Invalid JSON"),
    (b"\xff\xfe", "Invalid JSON"),
    ('{"type":"join","name":" ","id":"x","version":"1"}', "Invalid join"),
    ('{"type":"join","name":"x","id":"x"}', "Invalid join"),
    (json.dumps({"type": "join", "name": "n" * 101, "id": "x", "version": "1"}), "Invalid join"),
    ('{"type":"chat","content":"  "}', "Invalid chat"),
    (json.dumps({"type": "chat", "content": "c" * 100_001}), "Invalid chat"),
    ('{"type":"identity"}', "Invalid identity"),
    (json.dumps({"type": "identity", "summary": {"voice": "v" * 17_000}}), "Invalid identity"),
    ('{"type":"claim","action":"a","target":" "}', "Invalid claim"),
    (json.dumps({"type": "claim", "action": "a", "target": "t" * 5_001}), "Invalid claim"),
    ('{"type":"state","state":"busy"}', "Invalid state"),
    ('{"type":"action_result","action":"a","target":"t","success":1}', "Invalid action_result"),
    ('{"type":"reflection","summary":""}', "Invalid reflection"),
    ('{"type":"workspace_state","workspace":"w","totalTasks":"3","completedTasks":1}', "Invalid workspace_state"),
    ('{"type":"workspace_state","workspace":"w","totalTasks":1e999,"completedTasks":1}', "Invalid workspace_state"),
]


@pytest.mark.parametrize(("raw", "prefix"), REFUSED, ids=[f"{n}-{row[1]}" for n, row in enumerate(REFUSED)])
def test_what_is_unsound_is_refused_by_a_stable_prefix(raw: str | bytes, prefix: str) -> None:
    rejected = decode_request(raw, *WHO, AT)
    assert isinstance(rejected, Rejected)
    assert rejected.message.startswith(prefix)
    assert decode_event(encode_event(Refused(rejected.message))) == Refused(rejected.message)
    assert Refused(rejected.message).prefix == prefix


@pytest.mark.parametrize("raw", ["[]", '{"type":"dance"}', '{"type":["chat"]}'])
def test_what_is_no_message_is_passed_over_in_silence(raw: str) -> None:
    assert decode_request(raw) is None


def test_what_is_only_too_long_is_cut() -> None:
    assert request({"type": "state", "state": "acting", "detail": "d" * 1500}) == StateChanged(
        *WHO, "acting", AT, detail="d" * 1000
    )
    assert request({"type": "reflection", "summary": "s" * 6000}) == Reflected(*WHO, "s" * 5000, AT)
    assert request({"type": "reflection", "summary": "s" * 4999 + "🎨"}) == Reflected(*WHO, "s" * 4999 + "�", AT)


def test_a_member_cuts_what_a_room_would_refuse_and_does_without_what_it_can() -> None:
    frame = {"type": "claim", "name": "n" * 150, "action": "a", "target": "🎨" * 3_000}
    assert decode_event(json.dumps(frame)) == Claimed("n" * 100, "", "a", "🎨" * 2_500, "")
    assert decode_event('{"type":"workspace_state","name":"a","workspace":"w"}') == WorkspaceProgress(
        "a", "", "w", 0, 0, 0, 0, 0, ""
    )
    assert decode_event('{"type":"claim","name":"a","action":"a"}') == Unreadable("an incomplete claim")
    assert decode_event('{"type":"dance","name":"a"}') == Unreadable("of an unknown type")


def test_odd_side_fields_are_left_out_and_the_message_stays() -> None:
    assert request({"type": "chat", "content": "hi", "threadId": {"a": 1}}) == Said(*WHO, "hi", AT)
    assert request({"type": "chat", "content": "hi", "threadId": "t" * 201}) == Said(*WHO, "hi", AT)
    assert request({"type": "state", "state": "idle", "detail": 7}) == StateChanged(*WHO, "idle", AT)
    join = {"type": "join", "name": "a", "id": "b", "version": "1"}
    assert request({**join, "capabilities": ["social", 5, "github"]}) == Joined("a", "b", "1", ("social", "github"))
    assert request({**join, "capabilities": "all"}) == Joined("a", "b", "1")
    assert request({**join, "version": " "}) == Joined("a", "b", " ")
    assert isinstance(request({**join, "version": ""}), Rejected)
    assert request({**join, "resume": "r" * 101}) == Joined("a", "b", "1")
    assert request({**join, "capabilities": ["c" * 51, *["x"] * 20]}) == Joined("a", "b", "1", ("x",) * 16)


@pytest.mark.parametrize("name", ["host", "HOST", " Host ", "ｈｏｓｔ", "ho\u200bst"])  # noqa: RUF001 - a disguise
def test_no_spelling_of_the_hosts_name_is_free(name: str) -> None:
    assert is_reserved(name, "x-1")


def test_the_hosts_kind_of_id_is_not_free_but_names_that_only_begin_alike_are() -> None:
    assert is_reserved("marvin", "host-mwrx")
    assert not is_reserved("hostess", "hostess-1")


_HOSTILE = pytest.mark.parametrize(
    "raw",
    ["[" * 10_000, '{"a":' * 10_000, "[" * 500_000 + "]" * 500_000, '"\\' * 300_000, "9" * 500_000, "NaN", "-Infinity"],
    ids=["brackets", "objects", "balanced", "quotes", "digits", "nan", "infinity"],
)


@_HOSTILE
def test_hostile_json_is_an_error(raw: str) -> None:
    answer = decode_request(raw)
    assert answer is None or isinstance(answer, Rejected)
    assert isinstance(decode_event(raw), Unreadable)


@pytest.mark.perf
@_HOSTILE
def test_hostile_json_costs_no_time(raw: str) -> None:
    assert cpu_s(lambda: (decode_request(raw), decode_event(raw))) < 1.0


def test_a_frame_of_more_than_a_mebibyte_is_not_even_parsed() -> None:
    with pytest.raises(BadJson, match="1 MiB"):
        parse_json('"' + "x" * 1_048_576 + '"')


def test_brackets_inside_words_are_no_nesting() -> None:
    assert request({"type": "chat", "content": '[{"\\' * 2000}) == Said(*WHO, '[{"\\' * 2000, AT)


def test_numbers_travel_as_javascript_writes_them() -> None:
    assert parse_json("[1.0, -0.0, 2.5, 1e3, 1e999, 12345678901234567890]") == [
        1,
        0,
        2.5,
        1000,
        None,
        1.2345678901234567e19,
    ]
    assert encode_value(parse_json("[3.0]")) == "[3]"


def test_lone_surrogates_become_replacement_signs_in_both_directions() -> None:
    assert parse_json('"\\ud800 \\ud83c\\udfa8"') == "� 🎨"
    assert encode_value({"a": "\udc00"}) == '{"a":"�"}'
    assert Said(*WHO, "\udc00 \ud83c\udfa8", AT).content == "� 🎨"
    assert Joined(*WHO, "1", ("\udc00",)).capabilities == ("�",)


def test_an_entry_survives_the_way_to_disk_and_back() -> None:
    entry = entry_of(ActionDone(*WHO, "a", "t", success=True, timestamp=AT, link="l"))
    assert entry.content == '{"action":"a","target":"t","success":true,"link":"l"}'
    assert decode_entry(json.loads(encode_entry(entry))) == entry
    assert entry_of(WorkspaceProgress(*WHO, "w", 1, 2, 3, 4, 5, AT)).content == (
        '{"workspace":"w","plan":1,"total":2,"completed":3,"blocked":4,"inProgress":5}'
    )
    assert entry_of(StateChanged(*WHO, "acting", AT, detail="on it")).content == "acting: on it"
    assert entry_of(StateChanged(*WHO, "idle", AT)).content == "idle"
    assert entry_of(Claimed(*WHO, "a", "t", AT)).content == "a:t"


def test_presence_and_history_of_an_odd_server_are_read_as_far_as_they_can_be() -> None:
    odd = {"type": "presence", "agents": [7, {"name": ""}, {"name": "ada", "identity": 3, "capabilities": [1, "x"]}]}
    present = decode_event(json.dumps(odd))
    assert isinstance(present, PresenceList)
    (ada,) = present.agents
    assert (ada.name, ada.identity, ada.capabilities) == ("ada", None, ("x",))
    entries = [
        None,
        {"type": "dance"},
        {"type": "chat", "agentName": "a", "agentId": "b", "timestamp": AT, "content": "hi"},
    ]
    assert decode_event(json.dumps({"type": "history_response", "entries": entries})) == History(
        (LogEntry(AT, "a", "b", "chat", "hi"),)
    )
    assert decode_event('{"type":"presence","agents":"none"}') == PresenceList(())


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
_keys = ["name", "id", "version", "capabilities", "content", "threadId", "summary", "action", "target", "state"]
_keys += ["detail", "success", "link", "error", "workspace", "totalTasks", "completedTasks", "planNumber", "agents"]
_keys += ["entries", "message", "reason", "timestamp", "addressed"]
_types = ["join", "leave", "chat", "typing", "presence", "history_response", "identity", "claim", "state", "error"]
_types += ["action_result", "reflection", "workspace_state", "shutdown"]


def test_what_is_nested_too_deep_in_one_item_costs_that_item_only() -> None:
    deep = '{"voice":"dry","x":' + "[" * 2_000 + "]" * 2_000 + "}"
    agents = f'[{{"name":"eve","id":"e","identity":{deep}}},{{"name":"bob","id":"b"}}]'
    present = decode_event(f'{{"type":"presence","agents":{agents}}}')
    assert isinstance(present, PresenceList)
    assert [agent.name for agent in present.agents] == ["eve", "bob"]
    entry = '{"timestamp":"x","agentName":"eve","agentId":"e","type":"chat","content":"hi","more":'
    entries = f"[{entry}{'[' * 2_000}{']' * 2_000}}},{entry}1}}]"
    history = decode_event(f'{{"type":"history_response","entries":{entries}}}')
    assert isinstance(history, History)
    assert [each.content for each in history.entries] == ["hi", "hi"]


def test_whatever_a_member_may_tell_of_itself_its_room_can_tell_all_the_others() -> None:
    nested: object = 1
    while not isinstance(request({"type": "identity", "summary": {"x": nested}}), Rejected):
        deepest, nested = nested, [nested]
    agents = [{"name": "eve", "id": "e", "identity": {"x": deepest}}]
    assert isinstance(parse_json(json.dumps({"type": "presence", "agents": agents})), dict)


@settings(max_examples=examples(40))
@given(st.fixed_dictionaries({"type": st.sampled_from(_types)}, optional=dict.fromkeys(_keys, _json)))
def test_no_frame_whatsoever_makes_a_reader_raise(frame: dict[str, Any]) -> None:
    raw = json.dumps(frame)
    decode_event(raw)
    answer = decode_request(raw, *WHO, AT)
    if isinstance(answer, Rejected):
        assert answer.message.startswith(ERROR_PREFIXES)


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_no_bytes_whatsoever_make_a_reader_raise(raw: str | bytes) -> None:
    assert decode_event(raw) is not None
    decode_request(raw, *WHO, AT)
