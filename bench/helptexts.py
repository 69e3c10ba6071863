"""What is generated of the texts for people, from what reads their commands and files: the README's help texts, the
tables of settings and fields in SETTINGS.md and the READMEs of manifests/ and buzz-dataset/, the schema for editors.

`python -m bench.helptexts` renews them, `--check` compares.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import fieldtables
from bench.settings import ROOT

COMMANDS = {"list": ["--list"], "bench": ["--help", "bench"]}


def files() -> Iterator[tuple[Path, str]]:
    """Each file, and what it should hold."""
    yield ROOT / "README.md", with_help(_text(ROOT / "README.md"))
    for name in ("manifests/README.md", "buzz-dataset/README.md", "SETTINGS.md"):
        yield ROOT / name, fieldtables.generated(_text(ROOT / name))
    yield ROOT / "manifests/manifest.schema.json", fieldtables.manifest_schema()


def with_help(readme: str) -> str:
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


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main() -> None:
    stale = [(path, text) for path, text in files() if _text(path) != text]
    if "--check" in sys.argv and stale:
        listed = ", ".join(str(path.relative_to(ROOT)) for path, _ in stale)
        sys.exit(f"{listed}: not what the code says; `.venv/bin/python -m bench.helptexts` renews it")
    for path, text in stale:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
