"""What keeps a team of real agents from its work, as who has none of them at work can know it, too."""

from __future__ import annotations

from bench.errors import BuzzbenchError


class InstallFailed(BuzzbenchError):
    """The programs are not in the environment as they are on this host."""


class AgentsNotReady(BuzzbenchError):
    """Some agents did not start, or relay or gateway can't be reached from where they are."""


class EnvironmentGone(BuzzbenchError):
    """Commands don't run in the environment any more."""
