"""What `--record` and `--replay` mean for a plan: no key, the recorded tasks and attempts, what doesn't go together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bench import manifest
from bench.errors import InvalidInput
from bench.gateway import cassette
from bench.gateway.cassette import Address, Header, Timing
from bench.planning.harborjob import agent_kwargs, harbor_arguments, job_config
from bench.planning.replay import cassette_of
from bench.records.planrecord import describe
from tests.planning.kit import Project, project


@pytest.fixture
def made(tmp_path: Path) -> Project:
    return project(tmp_path)


def tape(made: Project, attempts: dict[str, int], *, team: Path | None = None, **changes: Any) -> Path:
    """A cassette with so many attempts at each task, of the rehearsal's condition or another one."""
    condition = manifest.load(team or made.root / "manifests" / "rehearsal.yaml")
    told: dict[str, Any] = {
        "job": "lb-team",
        "condition": condition.name,
        "condition_sha256": condition.sha256,
        "rehearsal": "good",
        "endpoints": dict.fromkeys(condition.endpoints, "anthropic"),
    }
    lines = cassette.header_line(Header(**told | changes))
    for address in _addresses(attempts):
        new = cassette.difference(None, {"model": "m", "messages": []})
        lines += cassette.call_line(address, new, None) + cassette.time_line(address, Timing(1, None, "x"))
    path = made.root / "tape.jsonl"
    path.write_bytes(lines)
    return path


def _addresses(attempts: dict[str, int]) -> Iterable[Address]:
    for task, number in attempts.items():
        for attempt in range(1, number + 1):
            yield Address(task, attempt, "orch", 1)


def replay(made: Project, cassette_path: Path, **changes: Any) -> Any:
    return made.plan(rehearsal=False, replay=cassette_path, **changes)


def problems(made: Project, cassette_path: Path, **changes: Any) -> list[str]:
    with pytest.raises(InvalidInput) as raised:
        replay(made, cassette_path, **changes)
    return [str(problem) for problem in raised.value.problems]


def test_a_rehearsals_cassette_is_played_by_the_rehearsals_team_in_the_sandbox(made: Project) -> None:
    made.task("alpha")
    path = tape(made, {"buzz/alpha": 1})
    plan = replay(made, path)
    assert (plan.condition.name, plan.environment, plan.stack) == ("rehearsal", "sandbox", "embedded")
    assert plan.rehearsal is None
    assert plan.key_variables == ()
    assert {endpoint.provider for endpoint in plan.endpoints.values()} == {"replay"}
    assert agent_kwargs(plan)["replay"] == str(path)
    assert agent_kwargs(plan)["rehearsal"] is None


def test_a_models_cassette_needs_no_key_and_no_endpoint_file(made: Project) -> None:
    made.task("alpha")
    team = made.manifest(made.team())
    path = tape(made, {"buzz/alpha": 1}, team=team, rehearsal=None)
    plan = replay(made, path, manifest=team, dry_run=False, environment="sandbox")
    assert plan.endpoint_config is None
    assert plan.key_variables == ()


def test_what_was_recorded_is_played_as_often_as_it_was(made: Project) -> None:
    """Without -k: also of both layers, in one job."""
    for name, layer in (("alpha", "regression"), ("beta", "workflow"), ("gamma", "workflow")):
        made.task(name, layer)
    path = tape(made, {"buzz/alpha": 3, "buzz/beta": 2})
    (job,) = replay(made, path).jobs
    assert ([task.name for task in job.tasks], job.attempts) == (["buzz/alpha", "buzz/beta"], 2)
    (fewer,) = replay(made, path, attempts=1, include=("alpha",)).jobs
    assert (fewer.trials, fewer.attempts) == (1, 1)


def test_more_attempts_than_were_recorded_are_refused_with_those_that_there_are(made: Project) -> None:
    made.task("alpha")
    path = tape(made, {"buzz/alpha": 2})
    assert problems(made, path, attempts=3) == [
        "--attempts/-k: 3 attempts were not recorded: 2 at buzz/alpha; give -k 2"
    ]


def test_a_task_that_was_not_recorded_is_an_error_where_it_is_asked_for(made: Project) -> None:
    made.task("alpha")
    made.task("beta")
    path = tape(made, {"buzz/alpha": 1})
    (told,) = problems(made, path, include=("beta",))
    assert told.startswith("--include-task: buzz/beta is not on the cassette ")


def test_a_cassette_of_other_tasks_is_refused_with_what_it_has(made: Project) -> None:
    made.task("alpha")
    path = tape(made, {"buzz/other": 1})
    assert any("none of the selected tasks is on it; it has buzz/other" in told for told in problems(made, path))


def test_another_condition_is_refused_by_both_names(made: Project) -> None:
    made.task("alpha")
    path = tape(made, {"buzz/alpha": 1}, condition="trio", condition_sha256="ab" * 32)
    (told,) = problems(made, path)
    assert "was recorded with the condition trio (abababababab), and this is rehearsal (" in told
    assert told.endswith("; give its --manifest")


def test_a_condition_that_was_changed_since_is_told_apart_by_its_hash(made: Project) -> None:
    made.task("alpha")
    (told,) = problems(made, tape(made, {"buzz/alpha": 1}, condition_sha256="ab" * 32))
    assert "by the same name, changed since" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"upload": True}, "--upload: a replay measures nothing and can't be uploaded; leave out one of the two"),
        ({"record": True}, "--replay: the cassette answers, so that --record has no effect; leave out --record"),
        (
            {"rehearsal": True},
            "--replay: the cassette answers, so that --rehearsal has no effect; leave out --rehearsal",
        ),
        (
            {"endpoint_config": Path("e.json")},
            "--replay: the cassette answers, so that --endpoint-config has no effect; leave out --endpoint-config",
        ),
    ],
)
def test_what_has_no_place_in_a_replay_is_refused(made: Project, change: dict[str, Any], told: str) -> None:
    made.task("alpha")
    path = tape(made, {"buzz/alpha": 1})
    with pytest.raises(InvalidInput) as raised:
        made.plan(**{"rehearsal": False, "replay": path, **change})
    assert told in [str(problem) for problem in raised.value.problems]


def test_of_a_cassette_that_can_not_be_read_nothing_else_is_said(made: Project) -> None:
    made.task("alpha")
    (made.root / "other.jsonl").write_text('{"schema": "buzzbench-cassette-9"}\n')
    assert problems(made, made.root / "nowhere") == [f"{made.root / 'nowhere'}: no such cassette"]
    (told,) = problems(made, made.root / "other.jsonl")
    assert "is a cassette of another version: buzzbench-cassette-9, not buzzbench-cassette-1" in told


def test_the_cassette_of_a_job_is_meant_by_the_jobs_name_or_directory(tmp_path: Path) -> None:
    job = tmp_path / "jobs" / "lb-team"
    job.mkdir(parents=True)
    file = job / cassette.FILE_NAME
    assert {cassette_of(named, job.parent) for named in (Path("lb-team"), job, file)} == {file}
    assert cassette_of(Path("nowhere"), job.parent) == Path("nowhere")


def test_a_cassette_without_a_call_is_refused(made: Project) -> None:
    made.task("alpha")
    (told,) = problems(made, tape(made, {}))
    assert told.endswith("there is no call on this cassette; record another with --record")


def test_a_registry_dataset_is_played_by_the_recorded_names(made: Project) -> None:
    team = made.manifest(made.team())
    path = tape(made, {"terminal-bench/fix-it": 2}, team=team, rehearsal=None)
    plan = replay(made, path, path=None, dataset="terminal-bench/terminal-bench-2-1", manifest=team)
    (job,) = plan.jobs
    assert (job.include, job.attempts) == (("terminal-bench/fix-it",), 2)
    with pytest.raises(InvalidInput, match="which dataset it is of isn't on a cassette; give --path or --dataset"):
        replay(made, path, path=None, manifest=team)


def test_the_printed_command_runs_the_very_replay(made: Project) -> None:
    made.task("alpha")
    path = tape(made, {"buzz/alpha": 1})
    plan = replay(made, path)
    arguments = harbor_arguments(plan, plan.jobs[0])
    assert f'replay="{path}"' in arguments
    assert job_config(plan, plan.jobs[0])["agents"][0]["kwargs"]["replay"] == str(path)


def test_a_recorded_job_says_so_to_its_agent_and_others_say_nothing(made: Project) -> None:
    made.task("alpha")
    assert agent_kwargs(made.plan(record=True))["record"] is True
    assert "record" not in agent_kwargs(made.plan())
    assert "replay" not in agent_kwargs(made.plan())


def test_a_replays_record_names_the_cassette_by_its_hash(made: Project) -> None:
    made.task("alpha")
    path = tape(made, {"buzz/alpha": 1})
    plan = replay(made, path)
    record = describe(plan, plan.jobs[0])
    assert record["replay"] == cassette.read(path).sha256
    assert record["rehearsal"] is None


def test_a_teams_cassette_is_no_baselines_and_that_is_said_with_the_way_on(made: Project) -> None:
    made.task("a")
    (of_team, _) = problems(made, tape(made, {"buzz/a": 1}), agent="terminus-2", environment="sandbox")
    assert of_team.endswith("; leave --agent out, and give its --manifest")
    alone = made.plan(rehearsal=False, agent="terminus-2", environment="sandbox", dry_run=True).condition
    taped = tape(made, {"buzz/a": 1}, condition=alone.name, condition_sha256=alone.sha256, rehearsal=None)
    (of_baseline, *_) = problems(made, taped, environment="sandbox")
    assert of_baseline.endswith("; give --agent terminus-2 and its --manifest")
