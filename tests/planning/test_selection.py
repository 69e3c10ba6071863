"""Which tasks are chosen: by globs and layer, exactly, and what matches nothing is told with its neighbours."""

from __future__ import annotations

from bench.planning.dataset import Dataset, read
from bench.planning.selection import select
from tests.planning.kit import Project


def found(home: Project, folder: str = "buzz-dataset") -> Dataset:
    return read(home.root / folder, home.tasks)


def chosen(home: Project, *include: str, exclude: tuple[str, ...] = (), layer: str | None = None) -> list[str]:
    tasks, problems = select(found(home), include, exclude, layer)
    assert not problems
    return [task.directory.name for task in tasks]


def test_a_glob_matches_the_name_or_the_directory_and_case_counts(home: Project) -> None:
    home.task("alpha", full_name="buzz/first")
    home.task("beta", full_name="buzz/second")
    assert chosen(home, "al*") == chosen(home, "buzz/f*") == ["alpha"]
    assert chosen(home, "*", exclude=("buzz/second",)) == ["alpha"]
    assert select(found(home), ["AL*"])[1]


def test_several_globs_add_up_and_exclusions_take_away(home: Project) -> None:
    for name in ("a1", "a2", "b1"):
        home.task(name)
    assert chosen(home, "a*", "b*", exclude=("*2",)) == ["a1", "b1"]


def test_a_layer_selects_by_metadata(home: Project) -> None:
    home.task("a")
    home.task("b", "workflow")
    assert chosen(home, layer="workflow") == ["b"]


def test_the_tasks_nearest_to_an_unmatched_glob_are_named(home: Project) -> None:
    home.task("split-and-merge")
    home.task("review-once")
    (include,) = select(found(home), ["split"])[1]
    assert str(include) == "--include-task split: matches no task; the nearest are split-and-merge"
    (exclude,) = select(found(home), (), ["reveiw*"])[1]
    assert str(exclude) == "--exclude-task reveiw*: matches no task; the nearest are review-once"
    (neither,) = select(found(home), ["zzz"])[1]
    assert str(neither) == "--include-task zzz: matches no task; there are review-once, split-and-merge"


def test_several_globs_in_one_are_explained(home: Project) -> None:
    """Case 48."""
    home.task("a")
    home.task("b", "workflow")
    _, (problem,) = select(read(home.tasks, home.tasks), include=["a,b"])
    assert (
        str(problem)
        == "--include-task a,b: matches no task; give one glob each time: --include-task a --include-task b"
    )


def test_a_single_task_obeys_globs_too(home: Project) -> None:
    home.task("a")
    single = found(home, "buzz-dataset/a")
    assert [str(p) for p in select(single, ["b"])[1]] == ["--include-task b: matches no task; there are a"]
    assert [str(p) for p in select(single, (), ["a"])[1]] == ["--exclude-task a: selects none of the 1 tasks"]


def test_choosing_nothing_at_all_is_an_error(home: Project) -> None:
    home.task("a")
    home.task("b")
    (problem,) = select(found(home), ["a"], ["*"], "regression")[1]
    assert str(problem) == "--include-task a --exclude-task * --layer regression: selects none of the 2 tasks"
