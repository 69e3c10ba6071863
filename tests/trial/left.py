"""What a trial left: Harbor's context of it, and the files in its directory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harbor.models.agent.context import AgentContext


@dataclass(kw_only=True)
class Left:
    directory: Path
    context: AgentContext = field(default_factory=AgentContext)

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = self.context.metadata["buzzbench"]
        return facts

    @property
    def trajectory(self) -> dict[str, Any]:
        return self._read("agent/trajectory.json")

    @property
    def evidence(self) -> dict[str, Any]:
        return self._read("buzzbench-evidence.json")

    def _read(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / name).read_text())
        return found
