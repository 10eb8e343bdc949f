"""What the journal holds about a person: entries about what they wrote, or about an act towards them."""

from modules.runtime.database.people import PersonalRows, PersonalTable

# NOTE(self): turns about a person who was forgotten still count against their limits, by a hash.
_KEEP_TURNS = """UPDATE journal SET summary = 'A turn about somebody who is forgotten', reason = '',
    author = NULL, dids = '', trigger_uri = NULL, intent_id = NULL,
    data = json_object('act', 'turn', 'did', '', 'hash', :hash, 'returned', json_extract(data, '$.returned'),
    'places', json(coalesce(json_extract(data, '$.places'), '[]')))
    WHERE instr(data, :did) AND json_field(data, 'did') = :did AND json_field(data, 'act') = 'turn'"""

JOURNAL_OF_PEOPLE = PersonalRows(
    "journal",
    (
        PersonalTable(
            name="journal",
            theirs="""(dids = :did OR (instr(trigger_uri, :part) AND holds_did(trigger_uri))
                OR trigger_uri IN (SELECT value FROM json_each(:posts))
                OR intent_id IN (SELECT value FROM json_each(:intents))
                OR (instr(data, :did) AND json_field(data, 'did') = :did))""",
            shown="summary",
            at="at",
            order="id",
            redacts={
                "summary": "redacted(summary)",
                "reason": "redacted(reason)",
                "author": "redacted(author)",
                "data": "redacted_json(data)",
                "dids": "without_did(dids)",
            },
            named="""SELECT count(*) || iif(count(*) = 1, ' entry', ' entries') || ' of the journal' FROM journal
                WHERE dids = '' AND named(summary, reason, author, data) HAVING count(*) > 0""",
        ),
    ),
    before=(_KEEP_TURNS,),
    copies=("UPDATE journal SET data = without_copies(data) WHERE instr(data, 'memory_save')",),
)
