"""The README's help texts, taken from the tasks. `python -m bench.helptexts` renews them, `--check` compares."""

from __future__ import annotations

import re
import subprocess
import sys

from bench.settings import ROOT

README = ROOT / "README.md"
COMMANDS = {"list": ["--list"], "bench": ["--help", "bench"]}


def generated(readme: str) -> str:
    """The README with the block of each `<!-- help: NAME -->` renewed."""
    for name, arguments in COMMANDS.items():
        block = re.compile(rf"(<!-- help: {name} -->\n```\n).*?(```\n)", re.DOTALL)
        text = _help(arguments)
        found = block.search(readme)
        assert found, f"README.md has no block `<!-- help: {name} -->`"
        readme = readme[: found.end(1)] + text + readme[found.start(2) :]
    return readme


def _help(arguments: list[str]) -> str:
    shown = subprocess.run(
        [sys.executable, "-m", "invoke", *arguments], cwd=ROOT, capture_output=True, text=True, check=True,
        env={"COLUMNS": "100", "PATH": "", "NO_COLOR": "1"},
    ).stdout  # fmt: skip
    return "\n".join(line.rstrip() for line in shown.strip("\n").splitlines()) + "\n"


def main() -> None:
    before = README.read_text(encoding="utf-8")
    after = generated(before)
    if "--check" in sys.argv:
        if before != after:
            sys.exit(
                "README.md: its help texts differ from the tasks'; `.venv/bin/python -m bench.helptexts` renews them"
            )
    elif before != after:
        README.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
