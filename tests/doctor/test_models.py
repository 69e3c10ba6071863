"""The condition's models: priced, placed, reachable, without a key ever being sent."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from bench.doctor import models
from bench.doctor.check import Context, run
from bench.doctor.models import CHECKS
from tests.doctor.conftest import Make
from tests.planning.kit import Project
from tests.ports import free_port


def endpoint_file(home: Project, url: str) -> Path:
    path = home.root / "endpoints.json"
    provider = {"provider": "anthropic", "base_url": url, "api_key_env": "SOME_API_KEY"}
    path.write_text(json.dumps({"claude-sonnet-4-6": provider}))
    return path


def found(context: Context) -> dict[str, tuple[str, str]]:
    return {result.name: (result.state, result.detail) for result in run(CHECKS, context)}


def test_the_shipped_conditions_have_prices_for_all_of_their_models(make: Make) -> None:
    state, detail = found(make())["conditions"]
    assert state == "ok"
    assert "with prices for all of their" in detail


def test_a_model_without_a_price_is_named_and_the_rest_waits(make: Make, home: Project) -> None:
    bad = home.manifest(home.team(prices={}))
    results = found(make(manifest=bad))
    assert results["conditions"][0] == "fail"
    assert "prices: no price for claude-sonnet-4-6 (orch, worker)" in results["conditions"][1]
    assert results["reachable"] == ("skip", "it needs conditions")


def test_an_endpoint_that_the_file_lacks_is_named(make: Make, home: Project) -> None:
    (home.root / "endpoints.json").write_text('{"x": {"provider": "openai"}}')
    state, detail = found(make(endpoint_config=home.root / "endpoints.json"))["endpoints"]
    assert state == "fail"
    assert "no endpoint claude-sonnet-4-6, which the manifest names; it has x" in detail


def test_a_key_that_is_not_set_is_named_and_one_that_is_never_shown(make: Make) -> None:
    assert found(make())["api keys"] == ("warn", "ANTHROPIC_API_KEY not set")
    state, detail = found(make(environ={"ANTHROPIC_API_KEY": "sk-secret"}))["api keys"]
    assert (state, detail) == ("ok", "ANTHROPIC_API_KEY set")


def test_a_scripted_team_needs_neither_key_nor_network(make: Make, home: Project) -> None:
    results = found(make(manifest=home.root / "manifests/rehearsal.yaml"))
    assert results["api keys"] == ("ok", "none is needed")
    assert results["reachable"][0] == "skip"


def test_an_endpoint_is_connected_to_and_sent_nothing(make: Make, home: Project) -> None:
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                received.append(connection.recv(1000))

        thread = threading.Thread(target=serve)
        thread.start()
        port = server.getsockname()[1]
        context = make(
            endpoint_config=endpoint_file(home, f"http://127.0.0.1:{port}"), environ={"SOME_API_KEY": "sk-secret"}
        )
        assert found(context)["reachable"] == ("ok", f"127.0.0.1:{port}")
        thread.join()
    assert received == [b""]


def test_an_endpoint_that_is_away_is_a_warning_with_its_place(make: Make, home: Project) -> None:
    port = free_port()
    state, detail = found(make(endpoint_config=endpoint_file(home, f"http://127.0.0.1:{port}")))["reachable"]
    assert (state, detail) == ("warn", f"no connection to 127.0.0.1:{port} (Connection refused)")


def test_one_that_never_answers_does_not_hold_up_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    def hang(*_: Any) -> str:
        let_go.wait()
        return ""

    monkeypatch.setattr(models, "CONNECT_S", 0.05)
    monkeypatch.setattr(models, "_connect", hang)
    place = (True, "api.example.org", 443)
    assert models.connect_all({place}) == {place: "gave no answer within 0.05 s"}
    let_go.set()


def test_a_proxy_is_where_the_connection_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example.org:3128")
    monkeypatch.setenv("no_proxy", "localhost")
    assert models._place("https://api.example.org/v1") == (False, "proxy.example.org", 3128)
    assert models._place("https://localhost/v1") == (True, "localhost", 443)
