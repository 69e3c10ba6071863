"""Trials' handles in PostgreSQL, and whether it answers at all (row R3)."""

from __future__ import annotations

import json

import psycopg

from bench.errors import BuzzbenchError
from bench.trial.handles import Handle

CONNECT_S = 5

STORE = """
INSERT INTO benchmark.trial_handle (job, trial, channel, task, condition_sha256, user_public, agents)
VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""


class HandleStore:
    """One connection for one job. Storing a handle again changes nothing; two processes that do take turns."""

    def __init__(self, dsn: str, job: str) -> None:
        """Connect, and see that the database answers. Raises BuzzbenchError."""
        self._job = job
        try:
            self._connection = psycopg.connect(dsn, connect_timeout=CONNECT_S, autocommit=True)
            self._connection.execute("SELECT 1")
        except psycopg.Error as error:
            why = str(error).splitlines()[0]
            raise BuzzbenchError(f"PostgreSQL doesn't answer: {why}", fix="`inv status`, then `inv up`") from None

    def store(self, handle: Handle) -> None:
        """Keep a trial's handle, under an advisory lock of the job. Raises psycopg.Error."""
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [self._job])
            self._connection.execute(
                STORE,
                [
                    self._job,
                    handle.trial,
                    handle.channel,
                    handle.task,
                    handle.condition_sha256,
                    handle.user_public,
                    json.dumps(dict(handle.agents)),
                ],
            )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
