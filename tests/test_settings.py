"""Settings: flag over environment over invoke.yaml over default, each with its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import settings
from bench.errors import InvalidInput


def test_each_source_yields_to_the_one_before_it() -> None:
    environ = {"BUZZBENCH_RELAY_PORT": "4001", "BUZZ_IMAGE": "image:env"}
    configured = {"relay_port": 4002, "buzz_image": "image:file", "git_probe": False}
    found = settings.load({"relay_port": 4000}, environ, configured)
    assert (found.relay_port, found.buzz_image, found.git_probe) == (4000, "image:env", False)
    assert found.origins["relay_port"] == "--relay-port"
    assert found.origins["buzz_image"] == "BUZZ_IMAGE"
    assert found.origins["git_probe"] == "invoke.yaml: buzzbench.git_probe"
    assert found.origins["gateway_port"] == "default"


def test_defaults_belong_to_the_projects_folder_not_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = settings.load({}, {}, {})
    assert found.state_dir == settings.ROOT / ".benchmark"
    assert found.jobs_dir == settings.ROOT / "jobs"


def test_an_empty_variable_counts_as_unset() -> None:
    assert settings.load({}, {"BUZZBENCH_RELAY_PORT": ""}, {}).relay_port == 3600


@pytest.mark.parametrize("given", ["0", "65536", "-1", "x", "3600.5"])
def test_a_bad_port_names_its_origin(given: str) -> None:
    with pytest.raises(InvalidInput, match=r"^BUZZBENCH_RELAY_PORT: .* is no TCP port; give a number from 1 to 65535$"):
        settings.load({}, {"BUZZBENCH_RELAY_PORT": given}, {})


@pytest.mark.parametrize(
    ("variable", "given", "message"),
    [
        ("BUZZBENCH_COMPOSE_PROJECT", "My.Project", "'My.Project' is no name of a Compose project"),
        ("BUZZBENCH_BRIDGE", "docker0", "'docker0' is no IP address"),
        ("BUZZBENCH_DOCKER_STARTS", "0", "'0' is no number of trials; give one from 1 to 999"),
    ],
)
def test_a_bad_value_for_docker_names_its_origin(variable: str, given: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{variable}: {message}"):
        settings.load({}, {variable: given}, {})


@pytest.mark.parametrize(
    ("variable", "given", "most"),
    [("BUZZBENCH_UPSTREAM_RETRIES", "-1", 99), ("BUZZBENCH_LONGEST_WAIT_S", "1h", 86_400)],
)
def test_a_bad_number_for_upstreams_names_its_origin(variable: str, given: str, most: int) -> None:
    with pytest.raises(InvalidInput, match=f"^{variable}: '{given}' is no whole number from 0 to {most}"):
        settings.load({}, {variable: given}, {})
    assert settings.load({}, {"BUZZBENCH_LONGEST_WAIT_S": "7200"}, {}).longest_wait_s == 7200


def test_all_bad_values_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as raised:
        settings.load({}, {"BUZZBENCH_RELAY_PORT": "x", "BUZZBENCH_GIT_PROBE": "perhaps"}, {})
    assert [problem.where for problem in raised.value.problems] == [
        "BUZZBENCH_RELAY_PORT",
        "BUZZBENCH_GIT_PROBE",
    ]
