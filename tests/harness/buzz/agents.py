"""An agent of a condition, for tests that need one."""

from __future__ import annotations

from typing import Any

from bench.condition import Agent, Kind


def agent(name: str, kind: Kind = "worker", **more: Any) -> Agent:
    given: dict[str, Any] = {
        "name": name,
        "member": name.partition("-")[0],
        "index": 1,
        "kind": kind,
        "role": "helper",
        "harness": "buzz-agent",
        "endpoint": "e",
        "model": "m-1",
        "prompt": "Do it.",
    }
    return Agent(**{**given, **more})
