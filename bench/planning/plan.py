"""What a command will do, decided before anything starts or is written: options in, a frozen plan out.

Everything that a person can get wrong is found here, all at once (exit 2), and with it what the machine lacks
(exit 3). Nothing is chosen by silent probing: the plan says stack, harness and environment (DESIGN decision 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import baseline, budget
from bench import endpoints as endpoint_files
from bench import manifest as manifests
from bench.condition import Condition, Limits
from bench.endpoints import SCRIPTED, Endpoint
from bench.errors import Problem, raise_problems
from bench.faults import Faults
from bench.nearest import did_you_mean
from bench.planning import baselines, checks, extras, harborjob, harbortask, machine
from bench.planning import jobs as plan_jobs
from bench.planning import replay as replays
from bench.planning.dataset import Task
from bench.planning.extras import Extras
from bench.planning.options import Options
from bench.planning.planned import Plan
from bench.planning.replay import Replay
from bench.planning.selection import Selection, choose
from bench.settings import STACKS
from bench.trial import reach

DEFAULT_MANIFEST = "manifests/tb-cobol-sonnet-haiku.yaml"
DEFAULT_ENDPOINTS = "manifests/endpoints/anthropic-live.json"
REHEARSAL_MANIFEST = "manifests/rehearsal.yaml"
DEFAULT_SCRIPT = "good"


@dataclass(frozen=True)
class _Draft:
    """What the options come to, each by itself: not yet held against the others."""

    options: Options
    rehearsal: str | None
    replay: Replay | None
    selection: Selection | None
    extras: Extras
    condition: Condition | None
    endpoints: Mapping[str, Endpoint]
    endpoint_config: Path | None
    environment: str
    stack: str

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.selection.tasks if self.selection else ()

    @property
    def modelless(self) -> bool:
        return _is_scripted(self.rehearsal, self.replay) or self.options.agent in baseline.MODELLESS


def make(options: Options, upload_problems: Callable[[Sequence[Path]], Iterable[Problem]] | None = None) -> Plan:
    """The plan for the options. Raises InvalidInput or MachineLacks with all problems; writes and starts nothing.

    `upload_problems` says what keeps jobs that are in these directories from being uploaded: it reads their records.

    A dry run plans the same, but asks for nothing that only a run needs: no key, no Docker, no sandbox, and not what
    Harbor says of the tasks, which takes longer than all the rest.
    """
    faults = Faults()
    draft = _draft(options, faults)
    options, condition, selection = draft.options, draft.condition, draft.selection
    jobs = plan_jobs.make(options, selection, condition, faults)
    of_job = budget.of_job(options, faults)
    faults += _unfit(draft, of_job)
    if not options.dry_run:
        faults += harbortask.problems(task for task in draft.tasks if not task.problems)
        if upload_problems and options.upload and not options.upload_anyway:
            faults += upload_problems([job.directory for job in jobs])
        machine.hide_keys(draft.endpoints)
        if not _is_astray(options):
            faults += _lacking(draft)
    if condition is None or not all(job.dataset or job.tasks for job in jobs):
        raise_problems(faults)  # What is planned can't be told.
    assert condition
    plan = Plan(
        jobs=jobs,
        stack=draft.stack,
        environment=draft.environment,
        rehearsal=draft.rehearsal,
        condition=condition,
        endpoints=draft.endpoints,
        endpoint_config=draft.endpoint_config,
        n_tasks=len(selection.dataset.tasks) if selection and selection.dataset else None,
        options=options,
        agent=options.agent,
        extras=draft.extras,
        replay=draft.replay,
        budget=of_job,
    )
    faults += checks.leaderboard_problems(options, [harborjob.verdict(plan, job) for job in jobs])
    raise_problems(faults)
    return plan


def _draft(options: Options, faults: Faults) -> _Draft:
    rehearsal = _script(options, faults)
    replay = replays.read(options, faults)
    if options.replay and replay is None:
        # What else is wrong can't be told without it: whose team it is, and which tasks.
        raise_problems(faults)
    selection = replays.narrowed(choose(options, faults), replay, options, faults)
    options = replays.with_attempts(options, selection.tasks if selection else (), replay, faults)
    harbors = extras.read(options, faults)
    condition, endpoints, endpoint_config = _terms(options, rehearsal, replay, harbors, faults)
    environment = options.environment or ("sandbox" if _is_scripted(rehearsal, replay) else "docker")
    unknown = [*checks.environment_problems(environment)]
    faults += unknown
    stack = _stack(options, condition, faults)
    if not unknown:
        faults += extras.problems(harbors, environment, options.agent)
    return _Draft(
        options, rehearsal, replay, selection, harbors, condition, endpoints, endpoint_config, environment, stack
    )


def _is_scripted(rehearsal: str | None, replay: Replay | None) -> bool:
    """Whether a script answers, now or when it was recorded."""
    return rehearsal is not None or (replay is not None and replay.rehearsal is not None)


def _unfit(draft: _Draft, of_job: Limits) -> Iterator[Problem]:
    """What doesn't go together."""
    options, condition, tasks, environment = draft.options, draft.condition, draft.tasks, draft.environment
    yield from checks.combination_problems(
        upload=options.uploads, rehearsal=draft.rehearsal, gui=options.gui, stack=draft.stack
    )
    if environment == "sandbox":
        yield from checks.sandbox_problems(tasks, modelless=draft.modelless)
    if condition:
        sockets = reach.by_sockets(environment, options.environ, options.doors)
        yield from checks.real_agent_problems(tasks, condition, environment, modelless=draft.modelless, sockets=sockets)
        yield from checks.deadline_problems(tasks, condition, draft.extras.config)
        yield from budget.too_small(condition, draft.endpoints, of_job)
        yield from checks.member_problems(tasks, condition)
        yield from checks.team_problems(tasks, condition)
        yield from baselines.reach_problems(tasks, condition, environment)
        yield from baselines.endpoint_problems(condition, draft.endpoints)
        yield from baselines.bound_problems(condition, draft.endpoints, of_job)
        if draft.rehearsal:
            yield from checks.script_problems(tasks, draft.rehearsal, condition)
    if options.agent == "oracle":
        yield from baselines.solution_problems(tasks)


def _lacking(draft: _Draft) -> Iterator[Problem]:
    """What a run needs that isn't there: keys, an engine, programs, servers."""
    options, environment = draft.options, draft.environment
    yield from machine.key_problems(
        draft.endpoints, draft.endpoint_config, options.environ, baseline=options.agent is not None
    )
    yield from machine.machine_problems(
        draft.condition, draft.stack, environment, options.environ, upload=options.uploads, gui=options.gui
    )
    yield from machine.listening_problems(draft.endpoints, draft.endpoint_config)
    if environment not in ("sandbox", "docker") and not any(checks.environment_problems(environment)):
        yield from extras.preflight(draft.extras, environment)


def _is_astray(options: Options) -> bool:
    """Whether what is to play is itself the fault: then keys and engines of something else are of no interest."""
    if options.agent:
        return options.agent not in baseline.MODELLESS and not baseline.asks_model(options.agent)
    return bool(options.script) and not options.rehearsal


def _script(options: Options, faults: Faults) -> str | None:
    if options.agent:
        return None  # What --rehearsal would be for is said with the baseline's other faults.
    if options.rehearsal:
        return options.script or DEFAULT_SCRIPT
    if options.script:
        faults.append(Problem("--script", "only a rehearsal follows a script", "add --rehearsal"))
    return None


def _terms(
    options: Options, rehearsal: str | None, replay: Replay | None, harbors: Extras, faults: Faults
) -> tuple[Condition | None, Mapping[str, Endpoint], Path | None]:
    """The condition, its endpoints and the file that they are from."""
    if options.agent:
        of_name = [*baselines.problems(options)]
        faults += of_name or baselines.option_problems(options.agent, harbors.agent_kwargs)
        if baseline.asks_model(options.agent):
            return _baseline_terms(options, replay, harbors, faults)
        return baseline.condition(options.agent), {}, None
    if options.model:
        what = "only a baseline plays another model than its own; a team's are in its --manifest"
        faults.append(Problem("--model", what, "leave it out, or name an --agent"))
    usual = REHEARSAL_MANIFEST if _is_scripted(rehearsal, replay) else DEFAULT_MANIFEST
    manifest = options.manifest or options.root / usual
    condition = faults.catch(lambda: manifests.load(manifest))
    path = options.endpoint_config or options.root / DEFAULT_ENDPOINTS
    if condition is None:
        if options.endpoint_config:
            faults.catch(lambda: endpoint_files.load(path))
        return None, {}, None
    if options.replay:
        return condition, _recorded(condition, replay, faults), None
    names = condition.endpoints
    found = faults.catch(lambda: endpoint_files.for_team(names, path, rehearsal=options.rehearsal))
    fileless = options.rehearsal and set(names) == {SCRIPTED}
    if fileless and options.endpoint_config:
        what = f"{condition.name} asks no endpoint of a file in a rehearsal, so that it has no effect"
        faults.append(Problem("--endpoint-config", what, "leave it out"))
    return condition, found or {}, None if fileless else path.absolute()


def _recorded(condition: Condition, replay: Replay | None, faults: Faults) -> Mapping[str, Endpoint]:
    """The endpoints as a cassette plays them; none where it can't be played, which has been told."""
    if replay is None:
        return {}
    faults += replays.problems(condition, replay)
    from bench.gateway import cassette

    return faults.catch(lambda: cassette.endpoints_of(condition.endpoints, replay.path)) or {}


def _baseline_terms(
    options: Options, replay: Replay | None, harbors: Extras, faults: Faults
) -> tuple[Condition | None, Mapping[str, Endpoint], Path | None]:
    """The same of an agent of Harbor's that asks a model."""
    assert options.agent
    path = options.endpoint_config or options.root / DEFAULT_ENDPOINTS
    team = faults.catch(lambda: manifests.load(options.manifest or options.root / baseline.MANIFEST, alone=True))
    if team is None:
        return None, {}, None
    condition = baseline.on_terms_of(team, options.agent, harbors.agent_kwargs, options.model)
    if isinstance(condition, Problem):
        faults.append(condition)
        return None, {}, None
    if options.replay:
        return condition, _recorded(condition, replay, faults), None
    names = condition.endpoints
    endpoints = faults.catch(lambda: endpoint_files.for_team(names, path, rehearsal=False))
    return condition, endpoints or {}, path.absolute()


def _stack(options: Options, condition: Condition | None, faults: Faults) -> str:
    if options.stack and options.stack not in STACKS:
        fix = did_you_mean(options.stack, STACKS)
        faults.append(Problem("--stack", f"unknown stack {options.stack!r}; it is {' or '.join(STACKS)}", fix))
    if options.stack:
        return options.stack
    builtin = condition is None or set(condition.harnesses) <= {"builtin"}
    return "embedded" if options.rehearsal or builtin else "compose"
