"""Harbor's own options: they go through where no rule breaks, and are refused with the rule where one would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.errors import InvalidInput
from bench.planning.dryrun import render
from bench.planning.extras import KEPT, PASSED, RETRIED
from bench.planning.harborjob import job_config
from tests.planning.kit import Project, project


@pytest.fixture
def home(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.task("a", more="[agent]\ntimeout_sec = 100\n")
    return made


def config(home: Project, **changes: Any) -> dict[str, Any]:
    plan = home.plan(**{"environment": "docker"} | changes)
    return job_config(plan, plan.jobs[0])


def refused(home: Project, **changes: Any) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        home.plan(**{"environment": "docker"} | changes)
    return str(caught.value).splitlines()


def more(home: Project, text: str, name: str = "more.yaml") -> Path:
    path = home.root / name
    path.write_text(text)
    return path


def test_values_are_read_as_harbor_reads_them(home: Project) -> None:
    given = ("auto_mounting=true", "keep_containers=False")
    environment = config(home, environment_kwarg=given)["environment"]
    assert (environment["type"], environment["kwargs"]) == ("docker", {"auto_mounting": True, "keep_containers": False})


@pytest.mark.slow
def test_values_agree_with_harbors_reader() -> None:
    from harbor.cli.utils import parse_kwargs

    from bench.faults import Faults
    from bench.planning.extras import _pairs

    given = ["a=1", "b=x y", "c=[1, 2]", "d=True", "e=None", 'f="q"', "g=h=i", " j = k "]
    assert _pairs("--x", given, Faults()) == parse_kwargs(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("auto_mounting", "--environment-kwarg auto_mounting: its form is name=value"),
        ("=3", "--environment-kwarg =3: its form is name=value"),
        ("mounting=true", "--environment-kwarg: invalid kwargs for environment 'docker': Unknown option 'mounting'."),
    ],
)
def test_an_option_that_the_environment_does_not_take_is_refused(home: Project, given: str, message: str) -> None:
    assert refused(home, environment_kwarg=(given,))[0].startswith(message)


def test_an_option_given_twice_is_refused(home: Project) -> None:
    given = ("auto_mounting=true", "auto_mounting=false")
    assert refused(home, environment_kwarg=given) == ["--environment-kwarg auto_mounting: is given twice; give it once"]


def test_the_sandbox_network_is_not_the_callers_to_say(home: Project) -> None:
    assert refused(home, environment="sandbox", environment_kwarg=("network=host",)) == [
        "--environment-kwarg: the sandbox takes no option network; leave it out"
    ]


def test_a_team_has_no_options_but_its_manifest(home: Project) -> None:
    assert refused(home, agent_kwarg=("version=2",)) == [
        "--agent-kwarg: a team has no option version: its manifest says how it plays; leave it out"
    ]


def test_retries_never_run_again_what_has_a_score(home: Project) -> None:
    assert config(home, max_retries="2")["retry"] == {"max_retries": 2, "include_exceptions": list(RETRIED)}
    assert "retry" not in config(home)
    assert refused(home, max_retries="21") == ["--max-retries: 21 is not a whole number from 0 to 20"]


@pytest.mark.slow
def test_harbor_grades_nothing_of_what_is_retried() -> None:
    from harbor.models.trial.error_policy import ERROR_POLICIES

    from bench.scoring.outcome import LABEL_OF_EXCEPTION

    assert {ERROR_POLICIES[name].should_grade for name in RETRIED} == {False}
    assert not set(RETRIED) & set(LABEL_OF_EXCEPTION)


def test_a_file_goes_below_what_the_options_say(home: Project) -> None:
    file = more(home, "verifier_timeout_multiplier: 2\nenvironment:\n  force_build: true\n")
    found = config(home, harbor_config=file)
    assert found["verifier_timeout_multiplier"] == 2
    assert (found["environment"]["force_build"], found["environment"]["type"]) == (True, "docker")


def test_what_makes_a_result_unfit_for_a_leaderboard_is_said(home: Project) -> None:
    """Case 8."""
    file = more(home, "agent_timeout_multiplier: 2.0\nverifier: {max_timeout_sec: 5}\n")
    text = render(home.plan(environment="docker", harbor_config=file, rehearsal=False))
    assert "# leaderboard  not eligible:\n#              agent_timeout_multiplier: 2.0, and a board wants 1\n" in text
    assert "\n#              verifier.max_timeout_sec: 5, and a board wants the task's own" in text


def test_a_multiplier_counts_for_the_time_that_is_left(home: Project) -> None:
    file = more(home, "agent_timeout_multiplier: 0.05\n")
    assert refused(home, harbor_config=file)[0].startswith(
        "buzz/a: no time is left for work: the task's agent timeout is 5 s, wind-down and evidence need 8 s"
    )


@pytest.mark.parametrize("name", sorted(KEPT))
def test_what_breaks_a_rule_is_refused_with_the_rule(home: Project, name: str) -> None:
    section, _, key = name.rpartition(".")
    file = more(home, f"{section}: {{{key}: 1}}\n" if section else f"{key}: 1\n")
    assert refused(home, harbor_config=file) == [f"{file}:1: {name}: can't be set here: {KEPT[name]}; remove it"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agent_timeout_multiplie: 2\n", ":1: agent_timeout_multiplie: unknown field; did you mean agent_timeout"),
        ("environment: docker\n", ":1: environment: is a section with fields of its own"),
        ("environment:\n  force_bild: true\n", ":2: environment.force_bild: unknown field; did you mean force_build"),
        ("timeout_multiplier: lots\n", ":1: timeout_multiplier: 'lots' is no number"),
        ("verifier: {env: {API_KEY: abcdef}}\n", ":1: verifier.env.API_KEY: looks like a secret; write ${API_KEY}"),
        ("- a\n", ": this Harbor configuration is no mapping of fields to values"),
        ("a: [\n", ":2: not valid YAML: "),
    ],
)
def test_faults_of_a_file_are_said_with_line_and_field(home: Project, text: str, message: str) -> None:
    file = more(home, text)
    assert refused(home, harbor_config=file)[0].startswith(f"{file}{message}")


def test_a_file_of_another_kind_is_refused(home: Project) -> None:
    file = more(home, "", "more.toml")
    assert refused(home, harbor_config=file) == [f"--harbor-config {file}: Harbor reads .yaml, .yml and .json files"]
    assert refused(home, harbor_config=Path("nope")) == ["nope: no such Harbor configuration"]


def test_a_json_file_may_be_indented_by_tabs_and_its_faults_have_lines(home: Project) -> None:
    file = more(home, '{\n\t"timeout_multiplier": 2\n}', "more.json")
    assert home.plan(harbor_config=file).extras.config == {"timeout_multiplier": 2}
    assert refused(home, harbor_config=more(home, '{\n\t"n_attempts": 2\n}', "bad.json"))[0].startswith(
        f"{home.root}/bad.json:2: n_attempts: can't be set here"
    )


@pytest.mark.slow
def test_every_field_that_passes_is_harbors() -> None:
    from harbor.models.job.config import JobConfig

    sections: dict[str, Any] = {"": JobConfig}
    for section in ("environment", "verifier"):
        sections[section] = JobConfig.model_fields[section].annotation
    for section, names in PASSED.items():
        assert set(names) <= set(sections[section].model_fields)
    for name in KEPT:
        section, _, key = name.rpartition(".")
        assert key in sections[section].model_fields
