"""A baseline that asks a model, by the command line: its key goes the way of a team's, and its cost is shown."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.gateway import cassette
from bench.settings import ROOT
from tests.pipeline import Installation, new_installation, remove
from tests.trial.test_baselineagent import KEY, Model, task, terminal
from tests.trial.upstream import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
async def installed() -> AsyncIterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-baseline-")))
    try:
        yield installation
    finally:
        await asyncio.to_thread(remove, installation)


async def test_a_baseline_runs_like_a_team_and_goes_on_like_one(installed: Installation, tmp_path: Path) -> None:
    model = Model(lambda asked: [], texts=[terminal("echo made > made\n", done=True)])
    made = task(tmp_path)
    async with serving(model, tmp_path, workers=0) as terms:
        words = (
            *("bench", "--path", str(made), "--agent", "terminus-2", "-e", "sandbox", "-k", "2", "--json"),
            *("--manifest", str(terms["manifest_path"]), "--endpoint-config", terms["endpoints"]),
            *("--agent-kwarg", "record_terminal_session=false", "--job-name", "alone"),
        )
        done = await asyncio.to_thread(installed.inv, *words, TEST_MODEL_KEY=KEY)
        assert done.returncode == 0, done.stderr
        (job,) = json.loads(done.stdout)["jobs"]
        assert [trial["outcome"] for trial in job["trials"]] == ["passed", "passed"]
        assert (job["agent"], job["condition"]) == ("terminus-2", "terminus-2")
        assert job["cost_usd_micros"] == 325 * len(model.keys) > 0
        again = await asyncio.to_thread(installed.inv, *words, TEST_MODEL_KEY=KEY)
        assert "has a score; nothing to run" in again.stderr
        plan = installed.inv(*(word for word in words if word not in ("--json", "alone")), "pasted", "--dry-run")
        command = plan.stdout.splitlines()[-1]
        environment = installed.environment | {"TEST_MODEL_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        pasted = await asyncio.create_subprocess_shell(
            command, cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await pasted.communicate()
        assert pasted.returncode == 0, said
    spend = installed.inv("spend", "--job", "alone", "--json")
    assert list(json.loads(spend.stdout)["agents"]) == ["baseline"]
    (shown,) = json.loads(installed.inv("report", "--job", "pasted", "--json").stdout)["jobs"]
    assert [trial["outcome"] for trial in shown["trials"]] == ["passed", "passed"]
    for path in (p for p in installed.home.rglob("*") if p.is_file()):
        assert KEY.encode() not in path.read_bytes(), path


async def test_terminus_is_recorded_and_played_again_at_no_cost_without_a_model_or_a_key(
    installed: Installation, tmp_path: Path
) -> None:
    look = terminal("date; cat /proc/sys/kernel/random/uuid; echo made > made\n", done=False)
    model = Model(lambda asked: [], texts=[look, terminal("", done=True)])
    made = task(tmp_path)
    async with serving(model, tmp_path, workers=0) as terms:
        words = (
            *("bench", "--path", str(made), "--agent", "terminus-2", "-e", "sandbox", "--json"),
            *("--manifest", str(terms["manifest_path"]), "--agent-kwarg", "record_terminal_session=false"),
        )
        asked = ("--endpoint-config", terms["endpoints"], "--record", "-k", "1", "--job-name", "taped")
        done = await asyncio.to_thread(installed.inv, *words, *asked, TEST_MODEL_KEY=KEY)
        assert done.returncode == 0, done.stderr
    (taped,) = json.loads(done.stdout)["jobs"]
    tape = Path(taped["directory"]) / cassette.FILE_NAME
    assert cassette.read(tape).header.condition == "terminus-2"
    again = await asyncio.to_thread(installed.inv, *words, "--replay", str(tape), "--job-name", "played")
    assert again.returncode == 0, again.stderr
    (played,) = json.loads(again.stdout)["jobs"]
    (before,), (after,) = taped["trials"], played["trials"]
    assert (after["outcome"], after["calls"], after["tokens"]) == ("passed", before["calls"], before["tokens"])
    assert after["calls"] >= 3
    assert (played["cost_usd_micros"], taped["cost_usd_micros"]) == (0, 325 * before["calls"])
    assert played["replay"] == cassette.read(tape).sha256
    other = ("bench", "--path", str(made), "--manifest", str(terms["manifest_path"]), "--replay", str(tape))
    refused = await asyncio.to_thread(installed.inv, *other, "-e", "sandbox")
    assert refused.returncode == 2
    assert refused.stderr.endswith("; give --agent terminus-2 and its --manifest\n")
