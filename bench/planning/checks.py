"""What of a plan doesn't go together: tasks, team, script, environment, time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.condition import Condition
from bench.errors import InvalidInput, Problem
from bench.faults import shown
from bench.nearest import did_you_mean
from bench.planning.dataset import Task
from bench.planning.leaderboard import PLAYED
from bench.upload import ANYWAY as UPLOAD_ANYWAY

if TYPE_CHECKING:
    from bench.planning.leaderboard import Verdict
    from bench.planning.options import Options

HARBOR_ENVIRONMENTS = (  # noqa: SIM905  (a list would be a line for each)
    "docker sbx podman daytona e2b modal runloop langsmith ec2 gke ack openshift novita apple-container singularity "
    "islo tensorlake cwsandbox use-computer cua-cloud blaxel opensandbox beam skypilot hf-sandbox hyperbrowser "
    "vercel runta prime kata mosaic smol sail kernel snowflake boxd superserve aca-sandbox"
).split()
"""Harbor 0.26's `EnvironmentType`, which a contract test holds this to: importing it takes longer than a dry run."""

ENVIRONMENTS = ("sandbox", *HARBOR_ENVIRONMENTS)


def environment_problems(environment: str) -> Iterator[Problem]:
    """Whether there is such an environment."""
    if environment not in ENVIRONMENTS:
        known = did_you_mean(environment, ENVIRONMENTS) or f"it is one of {', '.join(ENVIRONMENTS)}"
        yield Problem("--environment/-e", f"unknown environment {environment!r}", known)


def deadline_problems(
    tasks: Sequence[Task], condition: Condition, harbor_config: Mapping[str, Any]
) -> Iterator[Problem]:
    """Tasks in which nothing is left for work (DESIGN decision 7), Harbor's multipliers applied."""
    from bench.trial.deadline import task_timeout_s, work_limit

    for task in tasks if condition.agents or condition.soloist else ():
        parts = {f"{task.name}, step {step.name}": step.agent_timeout_s for step in task.steps}
        for where, own in (parts or {task.name: task.agent_timeout_s}).items():
            timeout_s = task_timeout_s(harbor_config, {"agent": {"timeout_sec": own}})
            try:
                work_limit(trial_budget_s=condition.timeout_seconds, task_timeout_s=timeout_s)
            except InvalidInput as error:
                yield from (Problem(where, found.what, found.fix) for found in error.problems)


def combination_problems(*, upload: bool, rehearsal: str | None, gui: bool, stack: str) -> Iterator[Problem]:
    """Options that don't go together with what runs."""
    if upload and rehearsal:
        yield Problem("--upload", "a rehearsal measures nothing and can't be uploaded", "leave out one of the two")
    if gui and stack != "compose":
        yield Problem("--gui", "the desktop app needs the Docker stack", "add --stack compose")


def leaderboard_problems(options: Options, verdicts: Sequence[Verdict]) -> Iterator[Problem]:
    """What keeps jobs off a leaderboard that are meant for one, or would be uploaded as such (public case 8)."""
    if options.leaderboard:
        option, fix = "--leaderboard", ""
    elif options.upload and not options.upload_anyway:
        option, fix = "--upload", UPLOAD_ANYWAY
    else:
        return
    found = dict.fromkeys(reason for verdict in verdicts for reason in verdict.reasons)
    # That a rehearsal or a replay is no upload at all has been said.
    reasons = [reason for reason in found if options.leaderboard or reason.field not in PLAYED]
    for reason in reasons:
        yield Problem(f"{option}: {reason.field}", reason.why, fix if reason is reasons[-1] else "")


def member_problems(tasks: Sequence[Task], condition: Condition) -> Iterator[Problem]:
    """Tasks that call on members by name whom the roster lacks: a mention of them would reach nobody."""
    names = {agent.name for agent in condition.agents}
    short: dict[str, list[str]] = {}
    playable = []
    for task in tasks if names else ():
        if missing := set(task.needs_members) - names:
            short.setdefault(_listed(missing), []).append(task.directory.name)
        else:
            playable.append(task.directory.name)
    others = f"play the others: {' '.join(f'-i {name}' for name in playable)}" if playable else "leave them out with -x"
    for missing_names, needing in short.items():
        what = f"its roster ({_listed(names)}) lacks {missing_names}, whom these tasks call on: {_listed(needing)}"
        yield Problem(condition.name, what, f"take another --manifest, or {others}")


def team_problems(tasks: Sequence[Task], condition: Condition) -> Iterator[Problem]:
    """What Harbor's format allows and no team can do: refused by name, rather than measured as something else."""
    for task in tasks if condition.agents else ():
        leave_out = f"leave it out with -x {task.directory.name}"
        if servers := task.environment.get("mcp_servers"):
            names = _listed([str(server.get("name")) for server in servers if isinstance(server, dict)])
            what = f"[[environment.mcp_servers]]: the task brings {names}, and no member can use a task's MCP server"
            yield Problem(shown(task.directory / "task.toml"), what, leave_out)
        if task.prior:
            what = "the task begins with a conversation to go on with, and that of one agent is no team's"
            yield Problem(shown(task.directory / task.prior), what, leave_out)


def script_problems(tasks: Sequence[Task], script: str, condition: Condition) -> Iterator[Problem]:
    """Tasks without the script, scripts with faults, and scripts that are not for this roster."""
    from bench.gateway.script import Known, load_file
    from bench.harness.toolspecs import ALL, DONE
    from bench.manifest.checks import USER

    names = {name for agent in condition.agents for name in (agent.member, agent.name)}
    lead = condition.orchestrator
    # Real agents are offered tools of their own.
    tools = {tool.name for tool in (*ALL, DONE)} if not condition.is_real else None
    known = Known({USER, *(agent.name for agent in condition.agents)}, tools, names)
    missing = []
    for task in tasks:
        file = task.directory / "rehearsal" / f"{script}.yaml"
        if not file.is_file():
            missing.append(task.directory.name)
            continue
        short = bool(set(task.needs_members) - names)
        try:
            parsed = load_file(file, None if short else known)
        except InvalidInput as error:
            yield from error.problems
            continue
        if short:
            continue  # Its script is for them, too: that the roster lacks them is told once, by `member_problems`.
        if task.for_any_team and parsed.steps_for(lead.name, lead.member):
            continue  # Its other parts are for other teams.
        if strangers := parsed.root.keys() - names:
            what = f"is for {_listed(strangers)}, whom the roster of {condition.name} lacks"
            several = "a script may have parts for several teams where task.toml has [metadata].needs_members = []"
            way_on = f"add a part for {lead.name}" if task.for_any_team else several
            yield Problem(shown(file), what, f"it has {_listed(names)}; {way_on}")
        elif not parsed.steps_for(lead.name, lead.member):
            yield Problem(shown(file), f"has no steps for {lead.name}, the orchestrator of {condition.name}")
    if missing:
        there = {file.stem for task in tasks for file in (task.directory / "rehearsal").glob("*.yaml")}
        fix = (
            did_you_mean(script, there - {script})
            or "leave them out with -x, or write it (buzz-dataset/README.md has its form)"
        )
        yield Problem("--rehearsal", f"no rehearsal/{script}.yaml in {_listed(missing)}", fix)


def sandbox_problems(tasks: Sequence[Task], *, modelless: bool) -> Iterator[Problem]:
    """Tasks that the sandbox refuses, by name and with all reasons; without a model a network is none (DESIGN 10)."""
    from bench.sandbox.definition import network_refusal, refusals, user_refusal

    for task in tasks:
        found = refusals(task.directory / "environment", task.environment)
        for context, environment in task.verifier_environments:
            found += [f"has a verifier that {reason}" for reason in refusals(context, environment)]
        found += [reason for reason in (user_refusal(task.users),) if reason]
        if not modelless and (reason := network_refusal(task.network_modes)):
            found.append(reason)
        elif other := _other_network(task):
            found.append(f"has network_mode {other!r} for its agent alone, and the sandbox has one for all it runs")
        for reason in found:
            yield Problem(task.name, reason, "use another environment, such as -e docker")


def _other_network(task: Task) -> str | None:
    """The mode that the agent has, in some step, and the environment has not: Harbor would refuse the whole job."""
    own, *phases = task.network_modes or (None,)
    agents = (mode for mode in phases[::2] if mode is not None)
    return next((mode for mode in agents if mode != (own or "public")), None)


def real_agent_problems(
    tasks: Sequence[Task], condition: Condition, environment: str, *, modelless: bool, sockets: bool
) -> Iterator[Problem]:
    """What real agents can't do: share a team with others, or reach relay and gateway without network and sockets."""
    if len(condition.harnesses) > 1:
        what = f"mixes agents of harness {_listed(condition.harnesses)}"
        yield Problem(condition.where, what, "give all members one: another harness is another condition")
    if not condition.is_real:
        return
    if environment == "sandbox" and not modelless:
        what = "its agents would need a network there, which the sandbox gives no real model"
        yield Problem(condition.name, what, "use another environment, such as -e docker")
        return
    for task in tasks:
        mode = next((mode for mode in task.network_modes if mode not in (None, "public")), None)
        if mode and not sockets:
            what = f"declares network_mode {mode!r}, where real agents need mounted sockets to reach relay and gateway"
            fix = "use -e docker with an engine of this machine, or a condition of builtin agents"
            yield Problem(task.name, what, fix)
        if len(users := dict.fromkeys(task.step_users)) > 1:
            listed = _listed([str(user or "the image's own") for user in users])
            what = f"has steps for agents of different users ({listed}), and real agents go on as they were started"
            yield Problem(task.name, what, "use a condition of builtin agents")


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
