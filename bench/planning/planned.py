"""A plan: what will run, once everything that a person asked for has been checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import baseline
from bench.condition import Condition, Limits
from bench.endpoints import Endpoint
from bench.errors import Problem
from bench.planning.extras import Extras
from bench.planning.jobs import JobPlan
from bench.planning.options import Options
from bench.planning.replay import Replay

NO_LIMITS = Limits()


@dataclass(frozen=True)
class Plan:
    """What will run.

    `rehearsal` is the script's name, or None; `agent` is the one of Harbor's that plays in a team's place, or None;
    `n_tasks` counts all tasks under a local path; `budget` has the caps of each job as a whole.
    """

    jobs: tuple[JobPlan, ...]
    stack: str
    environment: str
    rehearsal: str | None
    condition: Condition
    endpoints: Mapping[str, Endpoint]
    endpoint_config: Path | None
    n_tasks: int | None
    options: Options
    agent: str | None
    extras: Extras
    replay: Replay | None = None
    budget: Limits = NO_LIMITS

    @property
    def modelless(self) -> bool:
        """Whether what acts in it is a script, or an agent of Harbor's without a model, now or when it was recorded."""
        recorded = self.replay is not None and self.replay.rehearsal is not None
        return self.rehearsal is not None or self.agent in baseline.MODELLESS or recorded

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What its tasks say without any effect, and what its manifest may mean otherwise."""
        return (*self.condition.notes, *(note for job in self.jobs for task in job.tasks for note in task.notes))

    @property
    def condition_sha256(self) -> str:
        return self.condition.sha256

    @property
    def needs_agents(self) -> bool:
        """Whether real agents have to be built for it."""
        return any(agent.harness != "builtin" for agent in self.condition.agents)

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The variables that hold the keys of the endpoints that the roster uses, each once."""
        used = (endpoint.api_key_env for endpoint in self.endpoints.values())
        return tuple(dict.fromkeys(name for name in used if name))
