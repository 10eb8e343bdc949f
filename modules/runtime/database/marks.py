"""Small named values in `soul.db`. Each function is one step of a transaction that its caller opened."""

import json
import sqlite3
from collections.abc import Iterable, Mapping

BORN = "born_at"
"""Holds when this life began, ISO-8601, once the journal no longer reaches back to then."""
RESTORED = "restored_from"
"""Marks a database that is an earlier copy, until what it does not know has been made up for."""
RUNNING = "running_since"
"""Holds when the present run began, ISO-8601. If it is left behind, that run ended unexpectedly."""
REWRITE = "rewrite_due"
"""Is set while the file or its copies may still hold what was deleted on purpose."""
PROGRAM = "home_program"
"""Marks the version that lives here, and its trial (`modules/services/burn_in.py`)."""
KILLED = "it was killed, it crashed, or the machine stopped"
"""In words, why nobody is awake although the mark `RUNNING` is set."""


def get(connection: sqlite3.Connection, name: str) -> str:
    """Return the value of a mark; "" if it is not set."""
    return get_all(connection, [name]).get(name, "")


def get_all(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, str]:
    """Return the values of those of these marks that are set, by name, in order of the names."""
    query = "SELECT name, value FROM marks WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name"
    return {str(row[0]): str(row[1]) for row in connection.execute(query, (json.dumps(list(names)),))}


def starting_with(connection: sqlite3.Connection, prefix: str) -> dict[str, str]:
    """Return the marks whose names begin with `prefix`, by the rest of the name, in order of value and name."""
    query = (
        "SELECT substr(name, length(:prefix) + 1), value FROM marks"
        " WHERE substr(name, 1, length(:prefix)) = :prefix ORDER BY value, name"
    )
    return {str(row[0]): str(row[1]) for row in connection.execute(query, {"prefix": prefix})}


def put(connection: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Set these marks."""
    connection.executemany("INSERT OR REPLACE INTO marks (name, value) VALUES (?, ?)", values.items())


def put_if_absent(connection: sqlite3.Connection, name: str, value: str) -> None:
    """Set a mark unless it is set already."""
    connection.execute("INSERT OR IGNORE INTO marks (name, value) VALUES (?, ?)", (name, value))


def remove(connection: sqlite3.Connection, name: str) -> None:
    """Delete a mark."""
    connection.execute("DELETE FROM marks WHERE name = ?", (name,))
