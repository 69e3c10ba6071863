"""What was meant by a name that isn't there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from bench.gateway.script import Script
from bench.manifest.pricesheet import Sheet
from bench.manifest.schema import Manifest
from bench.nearest import similar_path
from bench.reading.wording import fields_beside


@pytest.mark.parametrize(
    ("given", "meant"),
    [("taem.yaml", "team.yaml"), ("team", "team.yaml"), ("taem", "team.yaml"), ("team.json", ""), ("no.yaml", "")],
)
def test_a_file_that_is_called_almost_so_is_named(tmp_path: Path, given: str, meant: str) -> None:
    for name in ("team.yaml", "invoke.yaml"):
        (tmp_path / name).touch()
    assert similar_path(tmp_path / given) == (meant and f"did you mean {tmp_path / meant}")


def test_a_name_that_would_break_the_line_is_not_offered(tmp_path: Path) -> None:
    for name in ("te\nam.yaml", "t\x1b[31meam.yaml"):
        (tmp_path / name).touch()
    assert similar_path(tmp_path / "team.yaml") == ""


def test_the_folder_of_the_name_comes_before_the_usual_ones(tmp_path: Path) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "team.yaml").touch()
    here, there = tmp_path / "here", tmp_path / "there"
    assert similar_path(here / "taem.yaml", there) == f"did you mean {here}/team.yaml"
    assert similar_path(tmp_path / "nowhere" / "taem.yaml", there) == f"did you mean {there}/team.yaml"
    assert similar_path(here / "taem.yaml", among=Path.is_dir) == ""


@pytest.mark.parametrize(
    ("form", "loc", "some"),
    [
        (Manifest, ("rooster",), {"condition", "roster"}),
        (Manifest, ("roster", 0, "promt"), {"prompt", "persona"}),
        (Manifest, ("roster", 0, "skills", 1, "pth"), {"path", "sha256"}),
        (Manifest, ("prices", "a-model", "tiers", 0, "above"), {"above_tokens", "input"}),
        (Sheet, ("prices", "a-model", "inptu"), {"input", "tiers"}),
        (Script, ("worker-1", 0, "do", 2, "send", "menton"), {"mention", "reply"}),
    ],
)
def test_the_fields_beside_one_are_those_of_its_place(
    form: type[BaseModel], loc: tuple[str | int, ...], some: set[str]
) -> None:
    beside = fields_beside(loc, form)
    assert some <= set(beside)
    assert len(beside) == len(set(beside))


def test_the_fields_of_another_place_are_not_beside_one() -> None:
    assert "kind" not in fields_beside(("trial_budget", "knd"), Manifest)
    assert "timeout_seconds" not in fields_beside(("roster", 0, "budget", "timeout"), Manifest)
