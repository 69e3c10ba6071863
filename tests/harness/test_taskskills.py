"""What agents are told of the skills that a task brings."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.harness import taskskills
from bench.harness.taskskills import Skill, SkillsMissing


@dataclass(frozen=True)
class Done:
    stdout: str | None
    stderr: str | None
    return_code: int


class Here:
    """Runs commands on this machine."""

    async def exec(self, command: str, *, timeout_sec: int | None = None) -> Done:
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        return Done(done.stdout, done.stderr, done.returncode)


def skill(home: Path, name: str, text: str) -> None:
    (home / name).mkdir(parents=True)
    (home / name / "SKILL.md").write_text(text)


async def test_each_skill_has_its_name_description_and_file_in_the_order_of_names(tmp_path: Path) -> None:
    skill(tmp_path, "z", "---\nname: adding\ndescription: Adds\n  up.\n---\nbody\n")
    skill(tmp_path, "it's odd", "---\nname: zebra\n---\n")
    (tmp_path / "no-skill").mkdir()
    found = await taskskills.read(Here(), f"{tmp_path}/")
    assert found == [
        Skill("adding", "Adds up.", f"{tmp_path}/z/SKILL.md"),
        Skill("zebra", "", f"{tmp_path}/it's odd/SKILL.md"),
    ]


@pytest.mark.parametrize(
    "text", ["", "no front matter", "---\nname: [broken\n---\n", "---\n- a list\n---\n", "x\n---\n"]
)
async def test_a_skill_that_does_not_introduce_itself_is_called_by_its_directory(tmp_path: Path, text: str) -> None:
    skill(tmp_path, "plain", text)
    assert await taskskills.read(Here(), str(tmp_path)) == [Skill("plain", "", f"{tmp_path}/plain/SKILL.md")]


async def test_an_empty_directory_brings_nothing_to_be_told(tmp_path: Path) -> None:
    found = await taskskills.read(Here(), str(tmp_path))
    assert (found, taskskills.told(found)) == ([], "")


async def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SkillsMissing, match=r"\[environment\]\.skills_dir /.*/nowhere can't be read in the task's env"):
        await taskskills.read(Here(), str(tmp_path / "nowhere"))
