"""The skills that a task brings in its environment (`[environment].skills_dir`), and how agents are told of them.

A skill is a directory with a SKILL.md, whose front matter has its `name` and `description`. Agents are told these and
where the file is; what is in it they read themselves, when they need it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.errors import BuzzbenchError
from bench.harness.shell import Environment

READ_S = 30
MOST_BYTES = 16_384
"""Of each SKILL.md: the front matter comes first."""
RECORD, UNIT = "\x1e", "\x1f"
READ = (
    "cd {directory} || exit 1; for file in */SKILL.md; do "
    '[ -f "$file" ] && printf \'\\036%s\\037\' "${{file%/SKILL.md}}" && head -c {bytes} "$file"; done; true'
)
"""Each skill's directory and the beginning of its file, told apart by ASCII's separators."""


class SkillsMissing(BuzzbenchError):
    """The task names a directory of skills that its environment doesn't have, or that can't be read there."""


@dataclass(frozen=True)
class Skill:
    """One skill; `file` is its SKILL.md in the environment."""

    name: str
    description: str
    file: str


async def read(environment: Environment, directory: str) -> list[Skill]:
    """The skills there, by name. Raises SkillsMissing, and what the environment raises."""
    command = READ.format(directory=shlex.quote(directory), bytes=MOST_BYTES)
    result = await environment.exec(command, timeout_sec=READ_S)
    if result.return_code:
        said = (result.stderr or result.stdout or "").strip() or f"exit code {result.return_code}"
        raise SkillsMissing(f"[environment].skills_dir {directory} can't be read in the task's environment: {said}")
    return sorted(_skills(result.stdout or "", directory.rstrip("/")), key=lambda skill: skill.name)


def _skills(output: str, directory: str) -> Iterator[Skill]:
    for record in output.split(RECORD)[1:]:
        folder, _, text = record.partition(UNIT)
        told = _front_matter(text)
        name, description = (told.get(key) for key in ("name", "description"))
        yield Skill(str(name or folder), " ".join(str(description or "").split()), f"{directory}/{folder}/SKILL.md")


def _front_matter(text: str) -> dict[str, Any]:
    """What stands between the first two lines of dashes; empty where there is nothing of the kind."""
    import yaml

    head, found, rest = text.lstrip("\ufeff").partition("---\n")
    if head.strip() or not found:
        return {}
    try:
        told = yaml.safe_load(rest.partition("\n---")[0])
    except yaml.YAMLError:
        return {}
    return told if isinstance(told, dict) else {}


def told(skills: Sequence[Skill]) -> str:
    """What agents are told of them; empty where there are none."""
    if not skills:
        return ""
    rows = [f"- {skill.name} ({skill.file}){f': {skill.description}' if skill.description else ''}" for skill in skills]
    return "\n".join(
        ["[Skills]", "The task brings skills. Before you do what one of them is for, read its file:", *rows]
    )
