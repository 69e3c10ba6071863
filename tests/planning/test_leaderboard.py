"""Whether a figure may stand on a leaderboard: told from the configuration, before the first call (public case 8)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import report
from bench.errors import InvalidInput
from bench.planning import harborjob, leaderboard
from bench.planning.dryrun import render
from bench.planning.harborjob import job_config
from bench.planning.leaderboard import Reason, Verdict, verdict
from bench.records import planrecord
from bench.records.merge import merged
from bench.report import table
from bench.settings import ROOT
from tests.planning.kit import Project, project
from tests.records.kit import PASSED, job, trial

DIGEST = f"sha256:{'ab' * 32}"
FIT: dict[str, Any] = {
    "n_attempts": 5,
    "agents": [{"name": "bench.trial.agent:TeamAgent", "kwargs": {"rehearsal": None}}],
    "environment": {"type": "docker"},
    "datasets": [{"name": "org/set", "ref": DIGEST}],
}


@pytest.fixture
def home(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.task("a", more="[agent]\ntimeout_sec = 600\n")
    return made


def fit(home: Project, **changes: Any) -> dict[str, Any]:
    """The options of a run that is fit for a leaderboard, but for the changes."""
    manifest = home.manifest(home.team())
    given = {"path": None, "dataset": f"org/set@{DIGEST}", "rehearsal": False, "environment": "docker"}
    return given | {"manifest": manifest, "stack": "embedded"} | changes


def test_the_whole_pinned_dataset_at_its_own_terms_is_eligible(home: Project) -> None:
    plan = home.plan(**fit(home))
    assert str(harborjob.verdict(plan, plan.jobs[0])) == "eligible"
    assert verdict(FIT).standing == "eligible"


@pytest.mark.slow
def test_harbors_defaults_change_no_verdict(home: Project) -> None:
    from harbor.models.job.config import JobConfig

    for changes in ({}, {"environment": "sandbox"}, {"attempts": 1}, {"include": ("x",)}):
        plan = home.plan(**fit(home, **changes))
        planned = job_config(plan, plan.jobs[0])
        resolved = json.loads(JobConfig.model_validate(planned).model_dump_json())
        assert verdict(resolved) == verdict(planned)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"agent_timeout_multiplier": 2.0}, "agent_timeout_multiplier: 2.0, and a board wants 1"),
        ({"timeout_multiplier": 0.5}, "timeout_multiplier: 0.5, and a board wants 1"),
        ({"n_attempts": 4}, "n_attempts: 4 of each task, and a board wants at least 5"),
        ({"n_attempts": None}, "n_attempts: 1 of each task, and a board wants at least 5"),
        ({"environment": {"override_cpus": 4}}, "environment.override_cpus: 4, and a board wants the task's own"),
        (
            {"environment": {"override_memory_mb": 1}},
            "environment.override_memory_mb: 1, and a board wants the task's own",
        ),
        (
            {"environment": {"override_storage_mb": 1}},
            "environment.override_storage_mb: 1, and a board wants the task's own",
        ),
        (
            {"environment": {"cpu_enforcement_policy": "ignore"}},
            "environment.cpu_enforcement_policy: ignore, and a board wants the limits kept as a task has them",
        ),
        (
            {"environment": {"extra_allowed_hosts": ["x.org"]}},
            "environment.extra_allowed_hosts: ['x.org'], and a board wants the task's own",
        ),
        (
            {"environment": {"mounts": [{"type": "bind", "source": "/a", "target": "/app/a", "read_only": True}]}},
            "environment.mounts: /app/a brings something of the host's into the tasks' containers",
        ),
        (
            {"environment": {"extra_docker_compose": ["/x/more.yaml"]}},
            "environment.extra_docker_compose: /x/more.yaml changes the tasks' containers",
        ),
        (
            {"environment": {"import_path": "bench.sandbox.environment:SandboxEnvironment", "kwargs": {}}},
            "environment.import_path: the sandbox has the host's userland and no limits",
        ),
        ({"verifier": {"max_timeout_sec": 9}}, "verifier.max_timeout_sec: 9, and a board wants the task's own"),
        (
            {"agents": [{"name": "x", "override_timeout_sec": 9}]},
            "agents.override_timeout_sec: 9, and a board wants the task's own",
        ),
        ({"override_error_policy": {"X": {}}}, "override_error_policy: it changes what counts as a score"),
        (
            {"datasets": [{"name": "org/set", "ref": "latest"}]},
            "datasets.ref: latest may be something else tomorrow: pin it, as in -d org/set@sha256:DIGEST",
        ),
        (
            {"datasets": [{"name": "org/set", "ref": DIGEST, "exclude_task_names": ["*/a"]}]},
            "datasets.exclude_task_names: ['*/a'] is a part of the dataset, and a board wants the whole",
        ),
        (
            {"datasets": [{"name": "org/set", "ref": DIGEST, "n_tasks": 3}]},
            "datasets.n_tasks: 3 is a part of the dataset, and a board wants the whole",
        ),
        (
            {"datasets": [{"path": "/d"}]},
            "datasets.path: /d is a local copy: a board takes its dataset by name and digest (-d NAME@sha256:DIGEST)",
        ),
        (
            {"datasets": [], "tasks": [{"path": "/d/a"}]},
            "tasks: /d/a is a local copy: a board takes its dataset by name and digest (-d NAME@sha256:DIGEST)",
        ),
    ],
)
def test_whatever_makes_figures_incomparable_is_named(changes: dict[str, Any], said: str) -> None:
    assert str(verdict(FIT | changes)) == f"not eligible: {said}"


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ({"name": "oracle"}, "agents.name: Harbor's oracle asks no model"),
        ({"name": "nop"}, "agents.name: Harbor's nop asks no model"),
        ({"kwargs": {"rehearsal": "good"}}, "agents.kwargs.rehearsal: a script answered in the models' place"),
        ({"kwargs": {"replay": "/c.jsonl"}}, "agents.kwargs.replay: a cassette answered in the models' place"),
    ],
)
def test_what_asked_no_model_never_counts_and_nothing_else_is_said_of_it(agent: dict[str, Any], said: str) -> None:
    assert str(verdict(FIT | {"agents": [agent], "n_attempts": 1})) == f"not eligible: {said}"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"extra_instructions": ["be quick"]}, "extra_instructions"),
        ({"environment": {"type": "docker", "env": {"A": "b"}}}, "environment.env"),
        ({"environment": {"type": "modal", "kwargs": {"secrets": []}}}, "environment.kwargs"),
        ({"verifier": {"env": {"A": "b"}}}, "verifier.env"),
        ({"datasets": [{"name": "set", "version": "2.0"}]}, "datasets.version"),
    ],
)
def test_what_only_a_board_can_say_is_unknown(changes: dict[str, Any], field: str) -> None:
    found = verdict(FIT | changes)
    assert (found.standing, [reason.field for reason in found.reasons]) == ("unknown", [field])


def test_what_real_agents_need_in_a_container_is_no_change_of_it(home: Project) -> None:
    team = home.team()
    for member in team["roster"]:
        member["harness"] = "buzz-agent"
    given = fit(home, manifest=home.manifest(team), agent_programs=home.root / "programs", doors=home.root / "d")
    for environ in ({}, {"DOCKER_HOST": "tcp://elsewhere:1"}):
        plan = home.plan(**given, environ=environ)
        assert str(harborjob.verdict(plan, plan.jobs[0])) == "eligible"


# What is refused, before anything starts


def refused(home: Project, **changes: Any) -> list[str]:
    before = home.files()
    with pytest.raises(InvalidInput) as caught:
        home.plan(**changes)
    assert home.files() == before
    return str(caught.value).splitlines()


def test_a_run_for_a_leaderboard_that_is_not_fit_is_refused_with_every_field(home: Project) -> None:
    more = home.root / "more.yaml"
    more.write_text("agent_timeout_multiplier: 2.0\n")
    assert refused(home, **fit(home, leaderboard=True, attempts=3, harbor_config=more)) == [
        "--leaderboard: agent_timeout_multiplier: 2.0, and a board wants 1",
        "--leaderboard: n_attempts: 3 of each task, and a board wants at least 5",
    ]


def test_what_else_is_wrong_is_told_at_once(home: Project) -> None:
    lines = refused(home, **fit(home, leaderboard=True, attempts=3, n_concurrent="many"))
    assert [line.split(": ")[0] for line in lines] == ["--n-concurrent/-n", "--leaderboard"]


def test_what_nobody_knows_is_no_more_fit_for_a_leaderboard(home: Project) -> None:
    (line,) = refused(home, **fit(home, leaderboard=True, dataset="set@2.0"))
    assert line == "--leaderboard: datasets.version: set is given without the digest of what is in it"


def test_a_fit_run_goes_on(home: Project) -> None:
    assert home.plan(**fit(home, leaderboard=True, upload=True)).options.uploads


def test_an_upload_of_what_is_not_eligible_is_refused_unless_told_otherwise(home: Project) -> None:
    (line,) = refused(home, **fit(home, upload=True, attempts=3))
    wanted = (
        "--upload: n_attempts: 3 of each task, and a board wants at least 5; --upload-anyway uploads it all the same"
    )
    assert line == wanted
    plan = home.plan(**fit(home, upload_anyway=True, attempts=3))
    assert plan.options.uploads
    assert render(plan).splitlines()[-1].endswith("--upload")


def test_a_rehearsal_is_not_uploaded_whatever_is_said(home: Project) -> None:
    assert refused(home, upload_anyway=True)[0].startswith("--upload: a rehearsal measures nothing")


def test_a_missing_login_and_an_unfit_run_are_told_at_once(home: Project) -> None:
    environ = {"HOME": str(home.root), "DOCKER_HOST": "unix:///nowhere", "ANTHROPIC_API_KEY": "x"}
    lines = refused(home, **fit(home, upload=True, attempts=3, dry_run=False, environ=environ))
    assert [line.split(": ")[0] for line in lines] == ["--upload", "-e docker", "--upload"]
    assert "not logged in to Harbor Hub" in lines[0]
    assert "n_attempts" in lines[2]


# Where it is said


def test_the_plan_says_it_and_the_record_keeps_it(home: Project) -> None:
    plan = home.plan(**fit(home, attempts=3))
    said = "not eligible: n_attempts: 3 of each task, and a board wants at least 5"
    assert f"# leaderboard  {said}\n" in render(plan)
    shown = json.loads(render(home.plan(**fit(home, attempts=3, json=True))))["jobs"][0]["leaderboard"]
    assert (shown["standing"], shown["reasons"][0]["field"]) == ("not eligible", "n_attempts")
    record = planrecord.describe(plan, plan.jobs[0])
    assert str(leaderboard.read(json.loads(json.dumps(record["leaderboard"])))) == said


def test_the_figure_says_when_it_is_not_comparable() -> None:
    verdicts = {
        "; not comparable": Verdict((Reason("n_attempts", "1"),)),
        "": Verdict((Reason("environment.env", "?", certain=False),)),
    }
    for tail, given in verdicts.items():
        record = job(trial("a__1", PASSED), planned=1)
        shown = table.render(replace(record, plan=replace(record.plan, leaderboard=given)))
        assert f"passed 1/1 (100%) of scored trials, 1/1 (100%) with unscored ones as failures{tail}" in shown
        assert f"leaderboard: {given}" in shown


def test_several_reasons_have_a_line_each() -> None:
    given = Verdict((Reason("n_attempts", "1"), Reason("tasks", "a part")))
    record = job(trial("a__1", PASSED), planned=1)
    shown = table.render(replace(record, plan=replace(record.plan, leaderboard=given)))
    first = shown.index("leaderboard: not eligible:")
    assert shown[first + 1 : first + 3] == ["  n_attempts: 1", "  tasks: a part"]


def test_what_is_fit_and_whole_is_said_how_to_send_in() -> None:
    record = job(trial("a__1", PASSED), planned=1)
    fit = replace(record, plan=replace(record.plan, leaderboard=Verdict()))
    assert "leaderboard: eligible; `inv pack --job jobs/lb-team` makes it ready to be sent in" in table.render(fit)
    assert "leaderboard: eligible" in table.render(replace(fit, planned_trials=2))


def test_programs_are_told_it(capsys: pytest.CaptureFixture[str]) -> None:
    record = job(trial("a__1", PASSED), planned=1)
    given = Verdict((Reason("n_attempts", "1"),))
    report.show([replace(record, plan=replace(record.plan, leaderboard=given))], as_json=True)
    (shown,) = json.loads(capsys.readouterr().out)["jobs"]
    assert shown["leaderboard"] == {
        "standing": "not eligible",
        "reasons": [{"field": "n_attempts", "why": "1", "certain": True}],
    }


@pytest.mark.parametrize("raw", [None, {}, {"reasons": 3}, {"reasons": ["x"]}, [], "eligible"])
def test_a_record_that_says_nothing_is_unknown_not_eligible(raw: Any) -> None:
    assert leaderboard.read(raw).standing == "unknown"


# Several jobs as one


def test_attempts_of_merged_jobs_add_up_and_a_part_completes_the_whole() -> None:
    few = Reason("n_attempts", "3 of each task")
    part = Reason("datasets.task_names", "['*/a'] is a part")
    first = job(*(trial(f"a__{n}", PASSED) for n in range(3)), name="one", planned=3)
    second = job(*(trial(f"a__{n}", PASSED) for n in range(3, 5)), name="two", planned=2)
    first = replace(first, plan=replace(first.plan, leaderboard=Verdict((few,))))
    second = replace(second, plan=replace(second.plan, leaderboard=Verdict((part, few))))
    (together,) = merged([first, second])
    assert str(together.plan.leaderboard) == "eligible"
    less = replace(second, trials=second.trials[:1])
    (together,) = merged([first, less])
    assert "4 of each task" in str(together.plan.leaderboard)
    parts = replace(first, plan=replace(first.plan, leaderboard=Verdict((part,))))
    (together,) = merged([parts, second])
    assert str(together.plan.leaderboard) == "not eligible: datasets.task_names: ['*/a'] is a part"


def test_our_overlays_set_no_times_and_no_resources() -> None:
    """What the verdict takes for granted of them."""
    import yaml

    allowed = {"stop_grace_period", "labels", "extra_hosts"}
    for path in leaderboard.OWN_OVERLAYS:
        services = yaml.safe_load(Path(path).read_text(encoding="utf-8"))["services"]
        assert {*services} == {"main"}
        assert {*services["main"]} <= allowed
    assert {Path(path).parent for path in leaderboard.OWN_OVERLAYS} == {ROOT / "compose"}


@pytest.mark.slow
def test_every_field_that_is_looked_at_is_harbors() -> None:
    from harbor.models.job.config import DatasetConfig, JobConfig
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig, VerifierConfig

    models = {"": JobConfig, "environment": EnvironmentConfig, "verifier": VerifierConfig, "agents": AgentConfig}
    for listed in (leaderboard.CHANGED, leaderboard.UNSURE):
        for section, names in listed.items():
            assert {*names} <= {*models[section].model_fields}
    assert {field.rpartition(".")[2] for field in leaderboard.PART} | {"ref", "version"} <= {
        *DatasetConfig.model_fields
    }
