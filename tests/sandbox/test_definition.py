"""A task that a sandbox can't hold is refused by name, before anything starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.sandbox import definition
from bench.settings import ROOT


def test_a_plain_task_is_taken(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python:3.13\nWORKDIR /app\n")
    assert definition.refusals(tmp_path, {"cpus": 0.5, "memory_mb": 64, "network_mode": "public"}) == []


def test_without_a_dockerfile_work_is_done_in_app(tmp_path: Path) -> None:
    assert definition.refusals(tmp_path, {}) == []
    assert definition.read(tmp_path).workdir == "/app"


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"docker_image": "org/x:1"}, "needs the image org/x:1, and the sandbox has no images"),
        ({"os": "windows"}, "needs windows, and the sandbox is Linux"),
        ({"gpus": 1}, "needs an accelerator (gpus, tpu), and the sandbox has none"),
        ({"tpu": {"type": "v5"}}, "needs an accelerator (gpus, tpu), and the sandbox has none"),
        ({"network_mode": "allowlist"}, "declares network_mode 'allowlist', and the sandbox can't tell hosts apart"),
    ],
)
def test_what_task_toml_asks_for_too_much(tmp_path: Path, environment: dict[str, Any], reason: str) -> None:
    assert definition.refusals(tmp_path, environment) == [reason]


def test_a_compose_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "docker-compose.yaml").write_text("services: {}\n")
    assert definition.refusals(tmp_path, {}) == ["is a docker-compose task, and the sandbox has one place only"]


def test_what_the_dockerfile_asks_for_too_much(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("x\n")
    (tmp_path / "Dockerfile").write_text("FROM x\nUSER app\nCOPY none /app/\n")
    assert definition.refusals(tmp_path, {"docker_image": "built/before"}) == [
        "has a .dockerignore, which the sandbox doesn't read",
        "Dockerfile line 2: USER: root is the only user there",
        "Dockerfile COPY: there is no none in the task's environment directory",
    ]


def test_the_network_that_a_real_model_cannot_have() -> None:
    refusal = "declares network_mode 'public', which the sandbox gives no real model"
    assert definition.network_refusal([None, "no-network"]) is None
    assert definition.network_refusal(["no-network", "public"]) == refusal


def test_other_users_than_root() -> None:
    assert definition.user_refusal([None, "root", 0, "0"]) is None
    assert definition.user_refusal([None, "agent"]) == "runs as user 'agent', and the sandbox has only root"
    assert definition.user_refusal([1000]) == "runs as user 1000, and the sandbox has only root"


def test_the_shipped_tasks_are_taken() -> None:
    tasks = sorted(ROOT.glob("buzz-dataset/*/environment"))
    assert tasks
    assert [refusal for task in tasks for refusal in definition.refusals(task, {})] == []


def test_a_plan_can_ask_without_loading_anything_heavy() -> None:
    code = "import sys, bench.sandbox.definition, bench.sandbox.probe; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not {"asyncio", "harbor", "pydantic", "tarfile"} & set(loaded.split())
