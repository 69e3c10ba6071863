"""A planned job in Harbor's terms: its JobConfig, and the command line that resolves to the very same one.

Both are pure functions of what a person gave, because Harbor compares them on resume (HARBOR.md section 7.4): no
port, temporary path, time or secret is in them. `harbor run … --print-config` holds them together in a test.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.baseline import WAYS
from bench.harness.buzz import fixed
from bench.planning import leaderboard
from bench.planning.extras import RETRIED
from bench.sandbox.definition import network_refusal
from bench.settings import ROOT
from bench.trial import reach

if TYPE_CHECKING:
    from bench.planning.jobs import JobPlan
    from bench.planning.leaderboard import Verdict
    from bench.planning.planned import Plan

AGENT = "bench.trial.agent:TeamAgent"
BASELINE = "bench.trial.baselineagent:BaselineAgent"
SANDBOX = "bench.sandbox.environment:SandboxEnvironment"


def job_config(plan: Plan, job: JobPlan) -> dict[str, Any]:
    """What `JobConfig.model_validate` takes. Harbor's defaults are left out.

    The agent is given by name, as the command line does it, and has no model: that would import litellm.
    """
    config = {
        "job_name": job.name,
        "jobs_dir": str(job.directory.parent),
        "n_attempts": job.attempts,
        "n_concurrent_trials": job.n_concurrent,
        "quiet": True,
        "agents": [{"name": agent_name(plan), "kwargs": agent_kwargs(plan)}],
        "environment": _environment(plan, job),
        **_retry(plan),
        **_tasks(job),
    }
    return _merged(plan.extras.config, config)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Harbor's own rule for a file and the command line: sections are merged, all else is replaced."""
    both = {
        name: _merged(base[name], value) if isinstance(value, dict) and isinstance(base.get(name), dict) else value
        for name, value in over.items()
    }
    return {**base, **both}


def agent_name(plan: Plan) -> str:
    """Who plays: our team, ours around an agent of Harbor's that asks a model, or Harbor's own."""
    return BASELINE if plan.condition.soloist else plan.agent or AGENT


def agent_kwargs(plan: Plan) -> dict[str, Any]:
    """The agent's arguments: a team's (ARCHITECTURE.md, "Harbor"), or those given for a baseline."""
    if soloist := plan.condition.soloist:
        return {
            "agent": soloist.agent,
            "model": soloist.model,
            "options": dict(soloist.options),
            "manifest": str(plan.condition.path),
            "condition_sha256": plan.condition_sha256,
            "endpoints": str(plan.endpoint_config) if plan.endpoint_config else None,
            **_cassette(plan),
        }
    if plan.agent:
        return dict(plan.extras.agent_kwargs)
    return {
        "manifest": str(plan.condition.path),
        "condition_sha256": plan.condition_sha256,
        "endpoints": str(plan.endpoint_config) if plan.endpoint_config else None,
        "rehearsal": plan.rehearsal,
        **_cassette(plan),
    }


def _cassette(plan: Plan) -> dict[str, Any]:
    return {
        **({"record": True} if plan.options.record else {}),
        **({"replay": str(plan.replay.path)} if plan.replay else {}),
    }


def overrides(plan: Plan) -> dict[str, int]:
    """The manifest's resources for the environment. The sandbox has no limits that they could replace."""
    return {} if plan.environment == "sandbox" else dict(plan.condition.overrides)


def environment_kwargs(plan: Plan, job: JobPlan) -> dict[str, Any]:
    """The environment's arguments. In the sandbox tasks and real agents get the host's network, but never a model's."""
    if plan.environment != "sandbox":
        return dict(plan.extras.environment_kwargs)
    wanted = plan.modelless and (plan.needs_agents or any(network_refusal(task.network_modes) for task in job.tasks))
    return {"network": "host"} if wanted else {}


def _environment(plan: Plan, job: JobPlan) -> dict[str, Any]:
    kwargs = environment_kwargs(plan, job)
    if plan.environment == "sandbox":
        return {"import_path": SANDBOX, "kwargs": kwargs}
    given = plan.extras.config.get("environment", {}).get("extra_docker_compose", [])
    laid_over = [*given, *overlays(plan)]
    return {
        "type": plan.environment,
        **overrides(plan),
        **({"kwargs": kwargs} if kwargs else {}),
        **({"extra_docker_compose": laid_over} if laid_over else {}),
        **({"mounts": mounts(plan)} if mounts(plan) else {}),
    }


def mounts(plan: Plan) -> list[dict[str, Any]]:
    """Where the engine is this machine's: the agents' programs, and the sockets of relay and gateway, read-only.

    Elsewhere the programs are uploaded, and the sockets are ports of this host.
    """
    given = plan.extras.config.get("environment", {}).get("mounts") or []
    directory = plan.options.agent_programs
    if plan.environment != "docker" or not plan.needs_agents or not reach.is_local(plan.options.environ):
        return []
    ways = []
    if directory is not None:
        names = (*fixed.AGENTS, fixed.FORWARDER)
        ways += [{"source": str(directory / name), "target": f"{fixed.PROGRAMS}/{name}"} for name in names]
    if by_sockets(plan):
        ways.append({"source": str(plan.options.doors), "target": fixed.DOORS})
    return [*given, *({"type": "bind", **way, "read_only": True} for way in ways)]


def by_sockets(plan: Plan) -> bool:
    """Whether the containers of real agents are given the sockets of relay and gateway."""
    options = plan.options
    return plan.needs_agents and reach.by_sockets(plan.environment, options.environ, options.doors)


def overlays(plan: Plan) -> list[str]:
    """The Compose files that are laid over each trial's container in Docker.

    Only real agents without sockets, and Harbor's own that are installed there, need a name for the host; a container
    whose network is restricted can't be given one.
    """
    if plan.environment != "docker":
        return []
    soloist = plan.condition.soloist
    dials = WAYS[soloist.agent].installed if soloist else plan.needs_agents and not by_sockets(plan)
    names = ["trial.yaml", *(["trial-host.yaml"] if dials else [])]
    return [str(ROOT / "compose" / name) for name in names]


def _retry(plan: Plan) -> dict[str, Any]:
    if not plan.extras.max_retries:
        return {}
    return {"retry": {"max_retries": plan.extras.max_retries, "include_exceptions": list(RETRIED)}}


def _tasks(job: JobPlan) -> dict[str, Any]:
    """Selected tasks are passed by their directories' names, exclusions are resolved (SEED.md row C6)."""
    if _is_task(job):
        return {"tasks": [{"path": str(job.path)}]}
    if job.path:
        return {"datasets": [{"path": str(job.path), "task_names": _names(job)}]}
    assert job.dataset
    name, _, version = job.dataset.partition("@")
    dataset: dict[str, Any] = {"name": name}
    if "/" in name:
        dataset["ref"] = version or "latest"  # as the command line has it
    elif version:
        dataset["version"] = version
    if job.include:
        dataset["task_names"] = list(job.include)
    if job.exclude:
        dataset["exclude_task_names"] = list(job.exclude)
    if job.n_tasks:
        dataset["n_tasks"] = job.n_tasks
    return {"datasets": [dataset]}


def _is_task(job: JobPlan) -> bool:
    return job.path is not None and job.path == job.tasks[0].directory


def _names(job: JobPlan) -> list[str]:
    # Harbor takes them for globs.
    return [glob.escape(task.directory.name) for task in job.tasks]


def harbor_arguments(plan: Plan, job: JobPlan) -> list[str]:
    """The arguments of `harbor` that run the job."""
    arguments = ["run"]
    if plan.extras.config_file:
        arguments += ["-c", str(plan.extras.config_file)]
    if job.path:
        arguments += ["-p", str(job.path)]
    else:
        assert job.dataset
        arguments += ["-d", job.dataset]
    included = job.include if job.dataset else [] if _is_task(job) else _names(job)
    for name in included:
        arguments += ["-i", name]
    for name in job.exclude:
        arguments += ["-x", name]
    if job.n_tasks:
        arguments += ["-l", str(job.n_tasks)]
    arguments += ["-a", agent_name(plan)]
    for name, value in agent_kwargs(plan).items():
        # As JSON, or Harbor would read a hash of digits as a number.
        arguments += ["--ak", f"{name}={json.dumps(value)}"]
    arguments += ["-e", SANDBOX if plan.environment == "sandbox" else plan.environment]
    for name, value in environment_kwargs(plan, job).items():
        arguments += ["--ek", f"{name}={json.dumps(value)}"]
    for path in overlays(plan):
        arguments += ["--extra-docker-compose", path]
    if mounts(plan):
        arguments += ["--mounts", json.dumps(mounts(plan))]
    for name, number in overrides(plan).items():
        arguments += [f"--{name.replace('_', '-')}", str(number)]
    if plan.extras.max_retries:
        arguments += ["-r", str(plan.extras.max_retries)]
        for name in RETRIED:
            arguments += ["--retry-include", name]
    arguments += ["-k", str(job.attempts), "-n", str(job.n_concurrent)]
    arguments += ["--job-name", job.name, "-o", str(job.directory.parent), "-q", "-y"]
    return arguments + (["--upload"] if plan.options.uploads else [])


def verdict(plan: Plan, job: JobPlan) -> Verdict:
    """Whether one of a plan's jobs may stand on a leaderboard."""
    return leaderboard.verdict(job_config(plan, job))
