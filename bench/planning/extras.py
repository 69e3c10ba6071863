"""Harbor's own options that go through to it, and why some don't: a rule of Buzzbench would break.

    extras.read(options, rehearsal=None, faults)  ->  Extras(max_retries=2, environment_kwargs={"auto_mounting": True})

What a person gives is checked by Harbor's own models. They load late, and only where something is given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import InvalidInput, Problem, raise_problems
from bench.faults import Faults
from bench.nearest import did_you_mean
from bench.reading import yamlfile
from bench.reading.textfile import TOO_DEEP

if TYPE_CHECKING:
    from bench.planning.options import Options

RETRIED = (
    "AgentSetupTimeoutError",
    "EnvironmentStartTimeoutError",
    "GKEExecStreamClosedError",
    "GKEPodNotFoundError",
    "HealthcheckError",
    "RuntimeRequestError",
    "SSHAccessError",
    "SandboxBuildFailedError",
)
"""What a retry is for: Harbor never grades these, so that no attempt with a score is ever run again (HARBOR.md 7.5).
Those that the agents themselves can bring about (out of memory, a lost environment) are left out: they are outcomes."""

MULTIPLIERS = (
    "timeout_multiplier",
    "agent_timeout_multiplier",
    "verifier_timeout_multiplier",
    "agent_setup_timeout_multiplier",
    "environment_build_timeout_multiplier",
)

MOST_RETRIES = 20

PASSED = {
    "": (
        *MULTIPLIERS,
        "artifacts",
        "environment",
        "extra_instruction_paths",
        "extra_instructions",
        "metrics",
        "verifier",
    ),
    "environment": (
        "cpu_enforcement_policy",
        "env",
        "extra_allowed_hosts",
        "extra_docker_compose",
        "force_build",
        "memory_enforcement_policy",
        "mounts",
        "override_gpus",
        "override_tpu",
    ),
    "verifier": (
        "env",
        "exclude_logs",
        "extra_allowed_hosts",
        "include_logs",
        "max_timeout_sec",
        "override_timeout_sec",
    ),
}
"""Fields of Harbor's job configuration that a file may give, by the section that they are in."""

KEPT = {
    "agents": "the agent is the condition's team, or --agent",
    "datasets": "what runs is chosen by --path or --dataset",
    "tasks": "what runs is chosen by --path or --dataset",
    "job_name": "it is given by --job-name",
    "jobs_dir": "it is given by --jobs-dir",
    "n_attempts": "it is given by --attempts",
    "n_concurrent_trials": "it is given by --n-concurrent",
    "retry": "it is given by --max-retries",
    "override_error_policy": "it would change what counts as a score",
    "install_only": "nothing would be judged",
    "user_agent": "the user is Buzzbench's own",
    "quiet": "progress is shown by Buzzbench",
    "environment.type": "it is given by --environment",
    "environment.import_path": "it is given by --environment",
    "environment.kwargs": "they are given by --environment-kwarg",
    "environment.delete": "what a run starts is removed",
    "environment.override_cpus": "it is part of the condition: environment.override_cpus in the manifest",
    "environment.override_memory_mb": "it is part of the condition: environment.override_memory_mb in the manifest",
    "environment.override_storage_mb": "it is part of the condition: environment.override_storage_mb in the manifest",
    "verifier.disable": "nothing would be judged",
    "verifier.import_path": "a task's own verifier judges it",
    "verifier.kwargs": "a task's own verifier judges it",
}
"""Fields that a file may not give, with the reason."""


@dataclass(frozen=True)
class Extras:
    """What goes through to Harbor. `config` is what `config_file` holds; Harbor reads it below all else."""

    agent_kwargs: Mapping[str, Any] = field(default_factory=dict)
    environment_kwargs: Mapping[str, Any] = field(default_factory=dict)
    max_retries: int = 0
    config_file: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


def read(options: Options, faults: Faults) -> Extras:
    """The extras of these options; what is wrong with them is added to `faults`."""
    file = options.harbor_config
    config = faults.catch(lambda: _config(file)) if file else None
    return Extras(
        agent_kwargs=_pairs("--agent-kwarg", options.agent_kwarg, faults),
        environment_kwargs=_pairs("--environment-kwarg", options.environment_kwarg, faults),
        max_retries=faults.number("--max-retries", options.max_retries, least=0, most=MOST_RETRIES) or 0,
        config_file=file.absolute() if file else None,
        config=config or {},
    )


def problems(extras: Extras, environment: str, agent: str | None) -> Iterator[Problem]:
    """What agent and environment say of their options; Harbor is asked, which knows those of each environment."""
    if extras.agent_kwargs and agent is None:
        names = ", ".join(extras.agent_kwargs)
        yield Problem("--agent-kwarg", f"a team has no option {names}: its manifest says how it plays", "leave it out")
    if not extras.environment_kwargs:
        return
    if environment == "sandbox":
        # It has one, and whether a model may have a network is not the caller's to say (DESIGN decision 10).
        names = ", ".join(extras.environment_kwargs)
        yield Problem("--environment-kwarg", f"the sandbox takes no option {names}", "leave it out")
        return
    from harbor.environments.factory import EnvironmentFactory
    from harbor.models.environment_type import EnvironmentType

    try:
        made = EnvironmentFactory.get_environment_class(EnvironmentType(environment))
        made.parse_options(dict(extras.environment_kwargs))
    except ImportError as error:
        yield _lacking(environment, error)
    except ValueError as error:
        yield _unfit(error)


def preflight(extras: Extras, environment: str) -> Iterator[Problem]:
    """What an environment of Harbor's finds missing before a run: programs, packages, credentials. Harbor asks, too,
    but only once the stack is up."""
    from harbor.environments.factory import EnvironmentFactory
    from harbor.models.environment_type import EnvironmentType

    try:
        EnvironmentFactory.run_preflight(EnvironmentType(environment), kwargs=dict(extras.environment_kwargs))
    except (ImportError, SystemExit) as error:
        yield _lacking(environment, error)
    except ValueError as error:
        yield _unfit(error)


def _lacking(environment: str, error: BaseException) -> Problem:
    return Problem(f"-e {environment}", " ".join(str(error).split()).rstrip("."), lacks=True)


def _unfit(error: ValueError) -> Problem:
    return Problem("--environment-kwarg", _lowered(" ".join(str(error).split()).rstrip(".")))


def _pairs(option: str, given: Sequence[str], faults: Faults) -> dict[str, Any]:
    """`name=value` as Harbor reads it: a value is JSON, or one of Python's three words, or else a text."""
    words = {"True": True, "False": False, "None": None}
    pairs: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            faults.append(Problem(f"{option} {text}", "its form is name=value"))
            continue
        if name in pairs:
            faults.append(Problem(f"{option} {name}", "is given twice", "give it once"))
        try:
            pairs[name] = json.loads(value)
        except RecursionError:
            faults.append(Problem(f"{option} {name}", TOO_DEEP))
        except ValueError:
            pairs[name] = words.get(value, value)
    return pairs


def _config(path: Path) -> Mapping[str, Any]:
    """What a file has of Harbor's job configuration. Raises InvalidInput where it can't be read, or given so."""
    kind = path.suffix.lower()
    if path.is_file() and kind not in {".yaml", ".yml", ".json"}:
        raise InvalidInput.of(f"--harbor-config {path}", "Harbor reads .yaml, .yml and .json files")
    parser = yamlfile.parse_json if kind == ".json" else yamlfile.parse
    document = yamlfile.read(path, what="Harbor configuration", parser=parser)
    raise_problems(_fields(document, "", document.data))
    raise_problems(_values(document))
    data: Mapping[str, Any] = document.data
    return data


def _fields(document: yamlfile.Document, section: str, data: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in data.items():
        at: yamlfile.Field = (section, str(name)) if section else (str(name),)
        dotted = ".".join(map(str, at))
        if dotted in KEPT:
            yield document.problem(at, f"can't be set here: {KEPT[dotted]}", "remove it")
        elif name not in PASSED[section]:
            yield document.problem(at, "unknown field", did_you_mean(str(name), PASSED[section]))
        elif name in PASSED:
            if isinstance(value, dict):
                yield from _fields(document, name, value)
            else:
                yield document.problem(at, "is a section with fields of its own")


def _values(document: yamlfile.Document) -> Iterator[Problem]:
    from harbor.models.job.config import JobConfig
    from harbor.utils.env import is_env_template, is_sensitive_env_key
    from pydantic import ValidationError

    for section in ("environment", "verifier"):
        environ = document.data.get(section, {}).get("env")
        for name, value in environ.items() if isinstance(environ, dict) else ():
            if is_sensitive_env_key(str(name)) and not is_env_template(str(value)):
                # Harbor keeps it, masked in part, in the job's files, and a resume would use the masked one.
                yield document.problem((section, "env", str(name)), "looks like a secret", f"write ${{{name}}}")
    try:
        # A copy: Harbor's validators take old names out of what they are given.
        JobConfig.model_validate(json.loads(json.dumps(document.data)))
    except ValidationError as error:
        yield from document.problems(error)


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
