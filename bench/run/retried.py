"""What Harbor throws away when it tries a trial again (`--max-retries`), kept: its retry removes the directory first.

The next try has the same name, so that receipts and journal tell both together; what the first one cost stays booked.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from bench.files import make_private_directory

if TYPE_CHECKING:
    from harbor.models.job.config import RetryConfig
    from harbor.models.trial.result import TrialResult


class Retries:
    """The tries of one job's trials. `archive` is where directories go, as `<archive>/retried/<trial>-<number>`."""

    def __init__(self, config: RetryConfig, archive: Path) -> None:
        self._config, self._place = config, archive / "retried"
        self._tries: Counter[str] = Counter()

    def keep(self, trial_dir: Path, result: TrialResult) -> Path | None:
        """Keep a trial that has just ended, if Harbor is about to try it again: where, or None. Raises OSError."""
        self._tries[trial_dir.name] += 1
        number = self._tries[trial_dir.name]
        if number > self._config.max_retries or not self._is_retryable(result):
            return None
        kept = make_private_directory(self._place) / f"{trial_dir.name}-{number}"
        shutil.copytree(trial_dir, kept, symlinks=True)
        return kept

    def _is_retryable(self, result: TrialResult) -> bool:
        """Harbor's own rule (`TrialQueue` in Harbor 0.26): every exception that it recorded is one to try again for."""
        exceptions = result.recorded_exceptions()
        return bool(exceptions) and all(self._config.is_retryable(e.exception_type) for e in exceptions)
