"""What the runs of rituals hold of a person. Each method is one step of a transaction that its caller opened."""

from __future__ import annotations

import json
import sqlite3

from common.person import Held, Trace

_THEIRS = "opener = ? AND role = 'participant'"
_WITH_THEM = "SELECT key, day, took_part FROM ritual_runs WHERE instr(took_part, ?)"


class RitualPeople:
    """The runs that a person opened; of others, that they took part."""

    store = "rituals"
    tables = frozenset({"ritual_runs"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return which runs those are."""
        did = trace.person.did
        if not did:
            return Held(self.store, 0, ())
        opened = f"SELECT 'opened ' || name || ' on ' || day FROM ritual_runs WHERE {_THEIRS} ORDER BY day"  # noqa: S608
        words = [str(row[0]) for row in connection.execute(opened, (did,))]
        words += [f"took part in {key} on {day}" for key, day, dids in self._with(connection, did) if did in dids]
        return Held(self.store, len(words), tuple(words))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete what they opened, and take them out of the rest; return how many rows changed."""
        did = trace.person.did
        if not did:
            return 0
        gone = connection.execute(f"DELETE FROM ritual_runs WHERE {_THEIRS}", (did,)).rowcount  # noqa: S608
        for key, day, dids in self._with(connection, did):
            left = json.dumps([one for one in dids if one != did])
            connection.execute("UPDATE ritual_runs SET took_part = ? WHERE key = ? AND day = ?", (left, key, day))
            gone += 1
        return gone

    def _with(self, connection: sqlite3.Connection, did: str) -> list[tuple[str, str, list[str]]]:
        rows = connection.execute(_WITH_THEM, (json.dumps(did),)).fetchall()
        return [(key, day, json.loads(dids)) for key, day, dids in rows]
