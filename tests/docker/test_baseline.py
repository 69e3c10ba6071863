"""An agent of Harbor's that is installed in a container: it finds the gateway on the host, and has a token only."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.docker import tasks
from tests.docker.installation import DockerInstallation
from tests.trial.test_baselineagent import KEY, Model
from tests.trial.upstream import serving

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

CLAUDE = """#!/usr/bin/env python3
# Stands for the program itself, which would be downloaded: one call the way Harbor has told it.
import json, os, sys, urllib.request
if "--version" in sys.argv:
    sys.exit(print("9.9.9 (Claude Code)"))
body = {"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
    said = json.load(answer)["content"][0]["text"]
open("result.txt", "w").write(said)
print(json.dumps({"type": "result", "result": said}))
"""


async def test_an_installed_agents_calls_come_through_the_gateway(
    shared: DockerInstallation, task_image: str, tmp_path: Path
) -> None:
    made = tasks.write(
        tmp_path,
        "installed",
        dockerfile=f"FROM {task_image}\nWORKDIR /app\nCOPY claude /usr/local/bin/claude\n",
    )
    program = made / "environment" / "claude"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    model = Model(lambda asked: [], texts=["done"])
    async with serving(model, tmp_path, workers=0) as terms:
        words = (
            *("bench", "--path", str(made), "--agent", "claude-code", "-e", "docker", "-k", "1", "--json"),
            *("--manifest", str(terms["manifest_path"]), "--endpoint-config", terms["endpoints"]),
            *("--agent-kwarg", "skip_install=true"),
        )
        done = await asyncio.to_thread(shared.inv, *words, TEST_MODEL_KEY=KEY)
    assert done.returncode == 0, done.stderr
    (trial,) = json.loads(done.stdout)["jobs"][0]["trials"]
    assert (trial["outcome"], trial["calls"], trial["cost_usd_micros"]) == ("passed", 1, 325), trial
    assert model.keys == [KEY]
