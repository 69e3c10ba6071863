"""What a job's trials share: found, checked, private, and gone with the event loop."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from bench import settings
from bench.endpoints import Endpoint
from bench.errors import InvalidInput, MachineLacks
from bench.gateway.protocol import JobNotice
from bench.keys import ensure
from bench.places import door_dir
from bench.settings import ROOT
from bench.stack import StackAddress
from bench.trial import notes, provisioner, session, stops
from bench.trial import terms as terms_of
from bench.trial.agent import TeamAgent
from bench.trial.terms import Terms

ADDRESS = StackAddress("embedded", "ws://localhost:1", "host=/x", "http://127.0.0.1:2", "/x/control.sock")
MANIFEST = ROOT / "manifests" / "rehearsal.yaml"


def terms(**changed: Any) -> dict[str, Any]:
    from bench import manifest

    return {
        "manifest": str(MANIFEST),
        "condition_sha256": manifest.load(MANIFEST).sha256,
        "rehearsal": "good",
        **changed,
    }


def test_the_provisioner_file_is_private_and_complete(tmp_path: Path) -> None:
    state = ensure(tmp_path / "state")
    path = provisioner.write_provisioner(tmp_path / "run" / "job", state, ADDRESS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert json.loads(path.read_text()) == {
        "relay_http_url": "http://localhost:1",
        "relay_ws_url": "ws://localhost:1",
        "owner_secret_key": state.owner.secret,
        "user_secret_key": state.user.secret,
        "gateway_url": "http://127.0.0.1:2",
        "gateway_control": "/x/control.sock",
        "agent_programs": str(settings.load().state_dir / "agent-programs"),
        "doors": str(door_dir(settings.load().state_dir)),
        "patience": {"retries": 8, "first_wait_s": 1.0, "longest_wait_s": 300},
        "budget": {"usd_micros": None, "tokens": None, "calls": None},
    }
    loaded = provisioner.load_provisioner(path.parent)
    assert (loaded.owner, loaded.user) == (state.owner, state.user)
    assert state.owner.secret not in repr(loaded)


@pytest.mark.parametrize(
    ("text", "what"), [(None, "there is no provisioner file"), ("{", "damaged"), ("{}", "damaged")]
)
def test_a_provisioner_file_that_is_no_good_is_named(tmp_path: Path, text: str | None, what: str) -> None:
    if text is not None:
        (tmp_path / "provisioner.json").write_text(text)
    with pytest.raises(InvalidInput, match=f"provisioner.json: {what}"):
        provisioner.load_provisioner(tmp_path)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"manifest": None}, "agent kwargs: manifest is missing"),
        ({"condition_sha256": ""}, "agent kwargs: condition_sha256 is missing"),
        ({"workers": 2}, "agent kwargs: unknown: workers"),
        ({"condition_sha256": "f" * 64}, "the condition is not the one that was planned"),
        ({"rehearsal": None}, "endpoints is missing"),
    ],
)
def test_preflight_refuses_options_that_do_not_fit(changed: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        TeamAgent.preflight(terms(**changed))


def test_preflight_of_a_pasted_command_wants_the_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUZZBENCH_RUN_DIR", raising=False)
    monkeypatch.setenv("BUZZBENCH_STATE_DIR", str(tmp_path / "state"))
    with pytest.raises(MachineLacks, match="the stack is not running; run `inv up`"):
        TeamAgent.preflight(terms())


def test_a_pasted_command_makes_the_jobs_run_directory_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state_dir = tmp_path / "state"
    monkeypatch.delenv("BUZZBENCH_RUN_DIR", raising=False)
    monkeypatch.setenv("BUZZBENCH_STATE_DIR", str(state_dir))
    state = ensure(state_dir)
    (state_dir / "stack.json").write_text(json.dumps(vars(ADDRESS)))
    TeamAgent.preflight(terms())
    run_dir = provisioner.run_dir_of("lb-x")
    assert run_dir == state_dir / "run" / "lb-x"
    assert provisioner.load_provisioner(run_dir).user == state.user


def test_a_key_comes_from_the_parent_or_the_environment_and_its_lack_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint("claude", "anthropic", "anthropic", "https://x", "SOME_KEY")
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(InvalidInput, match="endpoint claude: SOME_KEY is not set"):
        terms_of.api_key(endpoint)
    monkeypatch.setenv("SOME_KEY", "from the environment")
    assert terms_of.api_key(endpoint) == "from the environment"
    monkeypatch.setattr(terms_of, "_provided", {})
    terms_of.provide_keys({"SOME_KEY": "from the parent"})
    assert terms_of.api_key(endpoint) == "from the parent"
    assert terms_of.api_key(Endpoint("local", "openai", "openai", "http://x")) == ""


async def test_trials_of_a_job_share_one_lease_that_ends_with_close(bench: Any) -> None:
    given = Terms.of(terms())
    first, second = await asyncio.gather(session.of(bench.job_dir, given), session.of(bench.job_dir, given))
    assert first is second
    await session.close()
    assert first.http.closed
    third = await session.of(bench.job_dir, given)
    assert third is not first


async def test_a_session_that_failed_to_open_is_tried_anew(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Terms.of(terms(condition_sha256="f" * 64))
    for _ in range(2):
        with pytest.raises(InvalidInput, match="not the one that was planned"):
            await session.of(bench.job_dir, wrong)
    assert (await session.of(bench.job_dir, Terms.of(terms()))).condition.name == "rehearsal"


def test_a_session_ends_with_its_event_loop(shared_stack: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUZZBENCH_RUN_DIR", str(shared_stack.run_dir("loop")))
    (tmp_path / "loop").mkdir()

    async def use() -> session.Session:
        return await session.of(tmp_path / "loop", Terms.of(terms()))

    assert asyncio.run(use()).http.closed
    assert asyncio.run(use()).http.closed


def test_what_concerns_the_whole_job_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[stops.Stop] = []
    said: list[str] = []
    monkeypatch.setattr(stops, "_listener", stopped.append)
    monkeypatch.setattr(notes, "_listener", said.append)
    session._hear(JobNotice("note", "the job has spent 80 %"))
    session._hear(JobNotice("waiting", "later", "2026-01-01T00:00:00Z"))
    assert (said, stopped) == (["the job has spent 80 %"], [stops.Stop("waiting", "later")])
    monkeypatch.setattr(notes, "_listener", None)
    notes.say("nobody listens")
