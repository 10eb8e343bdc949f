"""The verdicts on repositories, as rows of `soul.db`. Each function is one step of a transaction of its caller."""

from __future__ import annotations

import sqlite3

from modules.services.repository_rules.types import RepositoryVerdict, VerdictCode


def get(connection: sqlite3.Connection, repo: str, since: str) -> RepositoryVerdict | None:
    """Return the verdict on a repository, if there is one of `since` or later that this version knows."""
    query = "SELECT code, path, at FROM repository_verdicts WHERE repo = ? AND at >= ?"
    row = connection.execute(query, (repo, since)).fetchone()
    if row is None or row[0] not in {code.value for code in VerdictCode}:
        return None
    return RepositoryVerdict(VerdictCode(row[0]), str(row[1]), str(row[2]))


def put(connection: sqlite3.Connection, repo: str, verdict: RepositoryVerdict) -> None:
    """Keep the verdict on a repository in place of the one before."""
    connection.execute(
        "INSERT OR REPLACE INTO repository_verdicts (repo, code, path, at) VALUES (?, ?, ?, ?)",
        (repo, verdict.code.value, verdict.path, verdict.at),
    )
