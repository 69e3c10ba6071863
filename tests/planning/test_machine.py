"""What a run needs of this machine is looked at before anything starts or is written (exit 3)."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from bench.errors import InvalidInput, MachineLacks
from bench.faults import shown
from tests.planning.kit import Project, project
from tests.standins.programs import make as make_programs


@pytest.fixture
def home(tmp_path: Path) -> Project:
    """A project with a task."""
    made = project(tmp_path)
    made.task("a")
    return made


def test_what_an_environment_of_harbors_needs_is_asked_before_anything_starts(
    home: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modal finds no credentials, and ec2 not the option that it must have: Harbor says home in its own words."""
    monkeypatch.setenv("HOME", str(home.root))
    monkeypatch.delenv("MODAL_TOKEN_ID", raising=False)
    given: dict[str, Any] = {"rehearsal": False, "manifest": home.manifest(home.team())}
    environ = {"ANTHROPIC_API_KEY": "x"}
    with pytest.raises(MachineLacks, match=r"^-e modal: Modal requires authentication\. Run 'modal token new'"):
        home.plan(**given, dry_run=False, environment="modal", environ=environ)
    with pytest.raises(
        InvalidInput, match=r"^--environment-kwarg: invalid kwargs for environment 'ec2': region: Field"
    ):
        home.plan(**given, dry_run=False, environment="ec2", environ=environ)
    assert home.plan(**given, environment="modal").environment == "modal"


def test_the_programs_of_real_agents_are_looked_at_before_anything_starts(home: Project) -> None:
    real = home.team()
    for member in real["roster"]:
        member["harness"] = "buzz-agent"
    given: dict[str, Any] = {"dry_run": False, "manifest": home.manifest(real)}
    with pytest.raises(MachineLacks, match=r"^xbuild: there is no docker command; .*BUZZBENCH_AGENT_PROGRAMS names$"):
        home.plan(**given, environ={"PATH": "", "BUZZBENCH_STATE_DIR": str(home.root)})
    there = home.root / "programs"
    there.mkdir()
    environ = {"PATH": "", "BUZZBENCH_AGENT_PROGRAMS": str(there)}
    with pytest.raises(MachineLacks, match="there is no buzz-acp and no buzz-agent and no buzz-dev-mcp"):
        home.plan(**given, environ=environ)
    make_programs(there)
    assert home.plan(**given, environ=environ).needs_agents


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_model_server_of_this_machine_that_does_not_run_is_said(home: Project, host: str) -> None:
    endpoints = home.root / "own.json"
    given: dict[str, Any] = {"rehearsal": False, "environment": "sandbox", "endpoint_config": endpoints}
    given["manifest"] = home.manifest(home.team())
    family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
    with socket.create_server((host.strip("[]"), 0), family=family) as server:
        url = f"http://{host}:{server.getsockname()[1]}/v1"
        endpoints.write_text(json.dumps({"claude-sonnet-4-6": {"provider": "openai", "base_url": url}}))
        assert home.plan(**given, dry_run=False).endpoints
    with pytest.raises(MachineLacks) as caught:
        home.plan(**given, dry_run=False)
    assert str(caught.value) == (
        f"endpoint claude-sonnet-4-6 ({shown(endpoints)}): nobody listens at {url}; "
        "start the model server there (such as `ollama serve`), or give its base_url"
    )
    assert home.plan(**given).endpoints


def test_a_model_elsewhere_is_not_asked_before_a_run(home: Project) -> None:
    endpoints = home.root / "own.json"
    away = {"provider": "openai", "base_url": "http://models.invalid:1/v1"}
    endpoints.write_text(json.dumps({"claude-sonnet-4-6": away}))
    team = home.manifest(home.team())
    assert home.plan(
        rehearsal=False, dry_run=False, environment="sandbox", endpoint_config=endpoints, manifest=team
    ).endpoints
