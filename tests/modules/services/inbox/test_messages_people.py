"""The direct messages of a person are told to them, and deleted when they are forgotten; those of others stay."""

import sqlite3

from common.person import Person, Trace
from modules.runtime.database.database import Database
from modules.runtime.database.people import know_person
from modules.services.inbox import messages
from modules.services.inbox.messages import ReceivedMessage, Talk
from modules.services.inbox.received import MESSAGES_OF_PEOPLE

OWNER, ADA = "did:plc:owner", "did:plc:ada"
AT = "2026-01-01T00:00:00.000Z"
SAID = (
    ReceivedMessage("talk-1", "1", "1", OWNER, "Good morning.", AT, AT),
    ReceivedMessage("talk-1", "2", "2", OWNER, "Ask ada.example about it.", AT, AT),
    ReceivedMessage("talk-2", "3", "3", ADA, "Tin or slate?", AT, AT),
)


async def test_a_persons_messages_go_and_those_of_others_that_name_them_stay(database: Database) -> None:
    people, trace = MESSAGES_OF_PEOPLE, Trace(Person(ADA, ("ada.example",)))
    await database.run(lambda connection: messages.take_in(connection, SAID))
    await database.run(lambda connection: messages.keep_talk(connection, Talk("talk-2", ADA, "request")))

    def forget(connection: sqlite3.Connection) -> tuple[tuple[str, ...], int]:
        know_person(connection, trace.person)
        return people.about(connection, trace).words, people.forget(connection, trace)

    told, gone = await database.run(forget)
    assert told == (f"{AT[:10]} Tin or slate?",)
    assert gone == 2
    assert [one.text for one in await database.run(messages.waiting)] == [
        "Good morning.",
        "Ask ada.example about it.",
    ]
    assert await database.run(lambda connection: messages.talk_with(connection, ADA)) is None
