"""Harbor's own agents in a team's place, in real jobs: through the gateway, metered, capped, and without a key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bench import baseline, manifest
from bench.condition import Condition
from tests.trial.harborjobs import HarborJobs, Ran
from tests.trial.upstream import Upstream, serving

pytestmark = [
    pytest.mark.slow,
    # Harbor warns of its own use of it.
    pytest.mark.filterwarnings("ignore:Task.checksum will be deprecated:DeprecationWarning"),
]

KEY = "sk-canary-7c1d90"
USAGE = {"input_tokens": 100, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 10, "output_tokens": 20}


@dataclass
class Model(Upstream):
    """Answers every call with the next text, the last one again and again, or with a status."""

    texts: list[str | int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    bounds: list[Any] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.bounds.append((await request.json()).get("max_tokens"))
        self.keys.append(request.headers.get("x-api-key", ""))
        said = self.texts[min(len(self.keys), len(self.texts)) - 1]
        if isinstance(said, int):
            error = {"type": "error", "error": {"type": "test_error", "message": "no"}}
            return web.json_response(error, status=said)
        return web.json_response(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "lead",
                "content": [{"type": "text", "text": said}],
                "stop_reason": "end_turn",
                "usage": USAGE,
            }
        )


def terminal(keystrokes: str, *, done: bool) -> str:
    """An answer as terminus-2 reads it."""
    commands = [{"keystrokes": keystrokes, "duration": 0.2}] if keystrokes else []
    return json.dumps({"analysis": "a", "plan": "p", "commands": commands, "task_complete": done})


def task(home: Path, *, steps: str = "", dockerfile: str = "") -> Path:
    path = home / "alone"
    for part in ("environment", "tests"):
        (path / part).mkdir(parents=True)
    (path / "task.toml").write_text(f'[task]\nname = "made/alone"\n[agent]\ntimeout_sec = 60\n{steps}')
    (path / "instruction.md").write_text("make it")
    (path / "environment" / "Dockerfile").write_text(f"FROM debian\nWORKDIR /app\n{dockerfile}")
    (path / "tests" / "test.sh").write_text("#!/bin/bash\ngrep -c made /app/made > /logs/verifier/reward.txt\n")
    return path


@dataclass
class Alone:
    """Runs baselines on the terms of a small manifest."""

    harbor: HarborJobs
    model: Model
    terms: dict[str, Any]

    async def play(
        self, made: Path, agent: str, options: dict[str, Any], *, change: Callable[[str], str] = str, **environment: Any
    ) -> Ran:
        path = self.terms["manifest_path"]
        path.write_text(change(path.read_text()))
        condition = baseline.on_terms_of(manifest.load(path), agent, options, None)
        assert isinstance(condition, Condition)
        kwargs = {
            "agent": agent,
            "model": "lead",
            "options": options,
            "manifest": str(path),
            "condition_sha256": condition.sha256,
            "endpoints": self.terms["endpoints"],
        }
        name = "bench.trial.baselineagent:BaselineAgent"
        return await self.harbor.play(made, {"name": name, "kwargs": kwargs}, environment)


@asynccontextmanager
async def _alone(harbor: HarborJobs, home: Path, *texts: str | int) -> AsyncIterator[Alone]:
    model = Model(lambda asked: [], texts=list(texts))
    async with serving(model, home, workers=0) as terms:
        yield Alone(harbor, model, terms)


@pytest.fixture
def alone(harbor: HarborJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return lambda *texts: _alone(harbor, tmp_path, *texts)


def receipts(ran: Ran) -> list[dict[str, Any]]:
    lines = (ran.directory.parent / "buzzbench-receipts.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [receipt for receipt in found if receipt["outcome"] != "open"]


PLAIN = {"record_terminal_session": False}


async def test_terminus_plays_a_task_from_outside_and_its_calls_are_metered_and_priced(
    alone: Any, tmp_path: Path
) -> None:
    texts = (terminal("echo made > made\n", done=True), terminal("", done=True))
    async with alone(*texts) as home:
        ran = await home.play(task(tmp_path), "terminus-2", PLAIN)
    assert ran.record.outcome.outcome == "passed", (ran.record.outcome, ran.result.exception_info)
    told = ran.told()
    assert (told["ended"], told["fault"], told["labels"]) == ("done", None, [])
    mine = receipts(ran)
    assert {(r["agent"], r["member"], r["model"], r["outcome"]) for r in mine} == {
        ("baseline", "baseline", "lead", "ok")
    }
    assert told["agents"]["baseline"]["calls"] == len(mine) == len(home.model.keys)
    # 100 fresh at 1, 50 read at 0.1, 10 written at 2, 20 out at 10 dollars a million.
    assert told["agents"]["baseline"]["cost_usd_micros"] == 325 * len(mine)
    assert ran.result.agent_result.n_input_tokens == 160 * len(mine)
    assert ran.result.agent_result.cost_usd == pytest.approx(0.000325 * len(mine))
    assert ran.result.agent_info.name == "terminus-2"
    assert (ran.directory / "agent" / "trajectory.json").exists()


async def test_terminus_answers_within_the_manifests_bound_under_a_cap_in_tokens(alone: Any, tmp_path: Path) -> None:
    def bounded(text: str) -> str:
        bound = text.replace("harness: builtin,", "harness: builtin, generation: {max_output_tokens: 777},")
        return bound.replace("timeout_seconds: 30", "timeout_seconds: 30, max_tokens: 900000")

    texts = (terminal("echo made > made\n", done=True), terminal("", done=True))
    async with alone(*texts) as home:
        ran = await home.play(task(tmp_path), "terminus-2", PLAIN, change=bounded)
    assert ran.record.outcome.outcome == "passed", (ran.record.outcome, ran.result.exception_info)
    assert set(home.model.bounds) == {777}


async def test_the_key_is_the_gateways_alone(alone: Any, tmp_path: Path) -> None:
    look = terminal("env > seen; cat /proc/*/environ > all 2> /dev/null; echo made > made\n", done=True)
    test = "cat /app/seen /app/all > /logs/verifier/seen; echo 1 > /logs/verifier/reward.txt\n"
    made = task(tmp_path)
    (made / "tests" / "test.sh").write_text(test)
    async with alone(look, terminal("", done=True)) as home:
        ran = await home.play(made, "terminus-2", PLAIN)
    assert set(home.model.keys) == {KEY}
    seen = (ran.directory / "verifier" / "seen").read_bytes()
    assert seen
    assert KEY.encode() not in seen
    for path in (p for p in ran.directory.parent.rglob("*") if p.is_file()):
        assert KEY.encode() not in path.read_bytes(), path


async def test_a_budget_ends_the_run_and_the_task_is_judged(alone: Any, tmp_path: Path) -> None:
    def capped(text: str) -> str:
        return text.replace("timeout_seconds: 30", "timeout_seconds: 30, max_calls: 2")

    async with alone(terminal("echo made >> made\n", done=False)) as home:
        ran = await home.play(task(tmp_path), "terminus-2", PLAIN, change=capped)
    assert (ran.told()["ended"], ran.record.outcome.outcome) == ("budget", "failed")
    assert "budget" in ran.record.outcome.labels
    assert len(home.model.keys) == 2


async def test_the_manifests_time_is_the_agents(alone: Any, tmp_path: Path) -> None:
    def short(text: str) -> str:
        return text.replace("timeout_seconds: 30", "timeout_seconds: 3")

    waits = json.dumps(
        {"analysis": "a", "plan": "p", "commands": [{"keystrokes": "echo made > made\n", "duration": 30}]}
    )
    async with alone(waits) as home:
        ran = await home.play(task(tmp_path), "terminus-2", PLAIN, change=short)
    assert (ran.told()["ended"], ran.record.outcome.outcome) == ("deadline", "passed")
    assert ran.record.outcome.labels == ("agent_timeout",)


async def test_an_upstream_that_refuses_the_key_leaves_no_score(alone: Any, tmp_path: Path) -> None:
    async with alone(401) as home:
        ran = await home.play(task(tmp_path), "terminus-2", PLAIN)
    assert ran.record.outcome.outcome == "unscored"
    assert ran.record.outcome.reason.startswith("upstream_refused: ")
    assert ran.result.verifier_result is None


STEPS = '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n'


async def test_a_task_in_steps_has_the_figures_of_each(alone: Any, tmp_path: Path) -> None:
    made = task(tmp_path, steps=STEPS)
    for step in ("one", "two"):
        (made / "steps" / step).mkdir(parents=True)
        (made / "steps" / step / "instruction.md").write_text(f"make {step}")
    async with alone(terminal("echo made > made\n", done=True)) as home:
        ran = await home.play(made, "terminus-2", PLAIN)
    assert [(step.name, step.outcome.outcome) for step in ran.record.steps] == [("one", "passed"), ("two", "passed")]
    for number, step in enumerate(("one", "two")):
        of_step = [r for r in receipts(ran) if r["step"] == step]
        assert ran.told(number)["agents"]["baseline"]["calls"] == len(of_step) > 0


@pytest.mark.parametrize(
    ("limit", "label"), [("timeout_seconds: 30, max_calls: 1", "budget"), ("timeout_seconds: 3", "agent_timeout")]
)
async def test_a_step_after_the_trials_limit_was_reached_is_not_passed(
    alone: Any, tmp_path: Path, limit: str, label: str
) -> None:
    made = task(tmp_path, steps=STEPS)
    for step in ("one", "two"):
        (made / "steps" / step).mkdir(parents=True)
        (made / "steps" / step / "instruction.md").write_text(f"make {step}")
    slow = {"keystrokes": "echo made > made\n", "duration": 30 if label == "agent_timeout" else 0.2}
    answer = json.dumps({"analysis": "a", "plan": "p", "commands": [slow]})
    async with alone(answer) as home:
        ran = await home.play(made, "terminus-2", PLAIN, change=lambda text: text.replace("timeout_seconds: 30", limit))
    one, two = (step.outcome for step in ran.record.steps)
    assert (one.outcome, one.labels) == ("passed", (label,))
    assert (two.outcome, two.labels) == ("failed", (label, "never_played"))
    assert ran.record.outcome.reason.startswith("step two: never played: ")
    assert len(home.model.keys) == 1


CLAUDE = """#!/bin/bash
if [ "$1" = --version ]; then echo "9.9.9 (Claude Code)"; exit; fi
echo "$ANTHROPIC_BASE_URL $ANTHROPIC_MODEL" > /app/asked
curl -sf "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -H 'content-type: application/json' \\
    -d '{"model": "'"$ANTHROPIC_MODEL"'", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}' \\
    > /app/made || exit 3
echo '{"type": "result", "result": "ok"}'
"""


def installed(home: Path, program: str = CLAUDE) -> Path:
    """A task with a stand-in of the program in its image, for the program itself is downloaded."""
    made = task(home, dockerfile="COPY claude /opt/bin/claude\nENV PATH=/opt/bin:/usr/bin:/bin\n")
    path = made / "environment" / "claude"
    path.write_text(program)
    path.chmod(0o755)
    (made / "tests" / "test.sh").write_text(
        "#!/bin/bash\ncp /app/asked /logs/verifier/; grep -c as-you-say /app/made > /logs/verifier/reward.txt\n"
    )
    return made


async def test_an_agent_that_is_installed_is_given_the_gateway_and_a_token_of_the_trial(
    alone: Any, tmp_path: Path
) -> None:
    async with alone("as-you-say") as home:
        ran = await home.play(installed(tmp_path), "claude-code", {"skip_install": True}, network="host")
    assert ran.record.outcome.outcome == "passed", (ran.record.outcome, ran.result.exception_info)
    (receipt,) = receipts(ran)
    assert (receipt["member"], receipt["outcome"], receipt["dialect"]) == ("baseline", "ok", "anthropic")
    asked = (ran.directory / "verifier" / "asked").read_text().split()
    assert asked == [home.harbor.stack.address.gateway_url, "lead"]
    assert home.model.keys == [KEY]
    assert ran.result.agent_info.name == "claude-code"


async def test_an_agent_that_gives_up_because_the_upstream_fails_has_no_score(alone: Any, tmp_path: Path) -> None:
    async with alone(500) as home:
        ran = await home.play(installed(tmp_path), "claude-code", {"skip_install": True}, network="host")
    assert ran.record.outcome.outcome == "unscored"
    assert ran.record.outcome.reason.startswith("upstream_failed: endpoint lead answered 500")


async def test_an_agent_that_ends_with_an_error_of_its_own_is_judged_by_what_it_left(
    alone: Any, tmp_path: Path
) -> None:
    program = CLAUDE.replace("echo '{", "exit 4; echo '{")
    async with alone("as-you-say") as home:
        ran = await home.play(installed(tmp_path, program), "claude-code", {"skip_install": True}, network="host")
    assert ran.result.exception_info.exception_type == "NonZeroAgentExitCodeError"
    assert (ran.record.outcome.outcome, ran.record.outcome.labels) == ("passed", ("agents_died",))
    assert ran.told()["reason"].startswith("NonZeroAgentExitCodeError: ")


async def test_options_that_the_agent_lacks_are_refused_before_anything_starts(alone: Any, tmp_path: Path) -> None:
    async with alone("x") as home:
        with pytest.raises(ValueError, match="Unknown option 'nonsense'"):
            await home.play(task(tmp_path), "terminus-2", {"nonsense": 1})
    assert not list(tmp_path.glob("job-*/alone__*"))
