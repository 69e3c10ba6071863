"""The rooms of bench/: what needs what goes one way (ARCHITECTURE.md, "The way of the data")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter

import pytest

from bench.settings import ROOT

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "bench").rglob("*.py"))
}
APART = ("relay", "gateway", "sandbox", "harness")
"""They meet in the seams alone."""


def room(module: str) -> str:
    """A package below bench/, or a module beside them."""
    return module.split(".")[1]


def needed(node: ast.AST) -> Iterator[str]:
    """The modules of bench/ that code imports, whenever it does; what only a type checker reads is not needed."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom) and child.module:
            names = [f"{child.module}.{name.name}" for name in child.names]
            yield from (name if name in MODULES else child.module for name in names)
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield from needed(child)


@pytest.fixture(scope="module")
def rooms() -> dict[str, set[str]]:
    """By room, the rooms that it needs."""
    found: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        if module != "bench":
            ours = (name for name in needed(ast.parse(path.read_text(encoding="utf-8"))) if name.startswith("bench."))
            found.setdefault(room(module), set()).update(room(name) for name in ours)
    return {name: others - {name} for name, others in found.items()}


def test_no_room_needs_one_that_needs_it(rooms: dict[str, set[str]]) -> None:
    order = [*TopologicalSorter(rooms).static_order()]  # raises CycleError, which names the circle
    assert order.index("planning") < order.index("records") < order.index("report") < order.index("commands")


@pytest.mark.parametrize("name", APART)
def test_the_services_and_the_harness_do_not_know_each_other(name: str, rooms: dict[str, set[str]]) -> None:
    assert rooms[name].isdisjoint(APART)
