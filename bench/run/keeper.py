"""Keeps trials' handles in PostgreSQL while a job runs (row R3). The job's result doesn't depend on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bench.trial.handles import Handle

if TYPE_CHECKING:
    from bench.run.handles import HandleStore


class Keeper:
    """Stores what `provisioned` events bring. What can't be stored is said once, and costs nothing else."""

    def __init__(self, dsn: str, job: str) -> None:
        self._dsn, self._job = dsn, job
        self._store: HandleStore | None = None

    def open(self) -> None:
        """Connect. Raises BuzzbenchError where PostgreSQL doesn't answer: then no trial should begin."""
        from bench.run.handles import HandleStore

        self._store = HandleStore(self._dsn, self._job)

    def see(self, event: dict[str, Any], note: Callable[[str], None]) -> None:
        """Look at one event of the child; `note` is told what could not be kept."""
        if event["event"] != "provisioned" or self._store is None:
            return
        from psycopg import Error

        try:
            self._store.store(Handle(**{name: event[name] for name in Handle.__dataclass_fields__}))
        except Error as error:
            note(f"handles of trials are not kept any more: {str(error).splitlines()[0]}")
            self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self._store is not None:
            self._store.close()
            self._store = None
