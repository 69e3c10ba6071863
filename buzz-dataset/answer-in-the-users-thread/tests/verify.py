"""Runs a task's checks, judge.py on the evidence and files.py on the workspace: checks.json and reward.txt.

The same file in every task. A part that raises becomes a check of its own that fails and names the reason.
"""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

LARGEST_FILE_BYTES = 1 << 20


def main(logs: Path, workspace: Path) -> None:
    """Write `{"evidence": {name: bool}, "files": {name: bool}}`, and the reward 1 where all of them hold."""
    tests = Path(__file__).resolve().parent

    def evidence() -> dict[str, bool]:
        text = (logs / "artifacts" / "relay_evidence.json").read_text(encoding="utf-8")
        checks: dict[str, bool] = runpy.run_path(str(tests / "judge.py"))["judge"](json.loads(text))
        return checks

    def files() -> dict[str, bool]:
        if not (tests / "files.py").exists():
            return {}
        checks: dict[str, bool] = runpy.run_path(str(tests / "files.py"))["checks"](reader(workspace))
        return checks

    verdict = {"evidence": outcome("evidence", evidence), "files": outcome("files", files)}
    holds = bool(verdict["evidence"]) and all(held for part in verdict.values() for held in part.values())
    written = logs / "verifier"
    (written / "checks.json").write_text(json.dumps(verdict, indent=1, ensure_ascii=False), encoding="utf-8")
    (written / "reward.txt").write_text("1\n" if holds else "0\n", encoding="utf-8")
    for part, checks in verdict.items():
        for name, held in checks.items():
            sys.stdout.buffer.write(f"{'ok  ' if held else 'FAIL'} {part}: {name}\n".encode())


def outcome(part: str, checks: Callable[[], dict[str, bool]]) -> dict[str, bool]:
    try:
        return checks()
    except Exception as error:
        return {f"the {part} can be judged ({type(error).__name__}: {error})": False}


def reader(workspace: Path) -> Callable[[str], str | None]:
    """A function that gives a workspace file's text, or None where no text file of sensible size is."""

    def read(name: str) -> str | None:
        path = workspace / name
        # A pipe would hang the verifier; a huge or binary file is no answer to any task.
        if not path.is_file() or path.stat().st_size > LARGEST_FILE_BYTES:
            return None
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return None

    return read


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
