"""Checks before bodies, arguments to pre-tasks, and one run of each task: on small collections of our Stage class."""

from __future__ import annotations

import errno
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from invoke import Collection, Config, Context, Exit, Program, task

from bench.errors import BuzzbenchError, InvalidInput, MachineLacks
from bench.stages import PlanExecutor, Stage, whole_number

stage = partial(task, klass=Stage)


class Kitchen:
    """A collection that notes which bodies ran, with what."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        ran = self.ran

        @stage
        def wash(c: Context) -> None:
            ran.append("wash")

        def check_heat(*, degrees: int, **_: Any) -> None:
            if degrees > 300:
                raise InvalidInput.of("--degrees", "too hot")

        @stage(pre=[wash], check=check_heat)
        def heat(c: Context, degrees: int = 180, fan: str = "") -> None:
            ran.append(f"heat {degrees} {fan}".rstrip())

        def check_bake(*, cake: str, **_: Any) -> None:
            if cake == "mud":
                raise InvalidInput.of("--cake", "not edible")
            if cake == "cloud":
                raise MachineLacks.of("oven", "too small")

        def plan_bake(name: str, *, degrees: int, dry_run: bool, **_: Any) -> dict[str, Any] | None:
            if dry_run:
                return None
            return {"degrees": degrees, "fan": "on"} if name == "heat" else {}

        @stage(
            pre=[wash, heat],
            check=check_bake,
            plan=plan_bake,
            iterable=["topping"],
            kinds={"layers": whole_number},
            shorts={"cake": "c", "topping": "t"},
        )
        def bake(
            c: Context,
            cake: str = "plain",
            degrees: int = 180,
            topping: list[str] | None = None,
            layers: int = 1,
            dry_run: bool = False,
            fail: str = "",
        ) -> None:
            if fail:
                raise BuzzbenchError(fail, fix="bake again")
            ran.append(f"bake {cake} {topping} {layers}")

        self.tasks = Collection(wash, heat, bake)
        self.program = Program(namespace=self.tasks, executor_class=PlanExecutor)

    def run(self, line: str) -> None:
        self.program.run(["inv", *line.split()], exit=False)

    def exit_code(self, line: str) -> int:
        with pytest.raises(SystemExit) as raised:
            self.program.run(["inv", *line.split()])
        assert isinstance(raised.value.code, int)
        return raised.value.code


@pytest.fixture
def kitchen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kitchen:
    monkeypatch.chdir(tmp_path)
    return Kitchen()


def test_pre_tasks_get_their_arguments_from_the_plan(kitchen: Kitchen) -> None:
    kitchen.run("bake --degrees 220 -c tart -t jam -t nuts --layers 3")
    assert kitchen.ran == ["wash", "heat 220 on", "bake tart ['jam', 'nuts'] 3"]


def test_a_dry_run_leaves_the_pre_tasks_out(kitchen: Kitchen) -> None:
    kitchen.run("bake --dry-run")
    assert kitchen.ran == ["bake plain [] 1"]


def test_a_task_named_and_implied_runs_once_with_the_arguments_of_both(kitchen: Kitchen) -> None:
    kitchen.run("heat bake --degrees 220")
    assert kitchen.ran == ["wash", "heat 220 on", "bake plain [] 1"]


def test_arguments_that_contradict_each_other_are_refused(kitchen: Kitchen, capsys: pytest.CaptureFixture[str]) -> None:
    assert kitchen.exit_code("heat --fan off bake") == 2
    assert "heat: --fan is both 'off' and 'on'; give it once" in capsys.readouterr().err
    assert kitchen.ran == []


def test_all_checks_on_the_line_come_before_any_body(kitchen: Kitchen, capsys: pytest.CaptureFixture[str]) -> None:
    assert kitchen.exit_code("heat --degrees 400 bake -c mud") == 2
    assert kitchen.ran == []
    assert capsys.readouterr().err == "inv: --degrees: too hot\ninv: --cake: not edible\n"


def test_problems_of_the_machine_alone_end_with_3(kitchen: Kitchen) -> None:
    assert kitchen.exit_code("bake -c cloud") == 3
    assert kitchen.exit_code("heat --degrees 400 bake -c cloud") == 2


def test_our_exceptions_become_exit_codes_with_their_next_step(
    kitchen: Kitchen, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kitchen.exit_code("bake --fail burnt") == 1
    assert capsys.readouterr().err == "inv: burnt; bake again\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bake --layers 0", "--layers: '0' is no whole number of at least 1"),
        ("bake --layers two", "--layers: 'two' is no whole number of at least 1"),
        ("bake --degrees warm", "--degrees: invalid literal for int()"),
        ("bake --cake a --cake b", "No idea what 'b' is (is --cake given twice?); see `inv --help bake`"),
        ("bake --colour red", "No idea what '--colour' is; see `inv --help bake`"),
        ("bake --cake", "Flag --cake needed value and was not given one; see `inv --help bake`"),
        ("bake --cake=", "--cake is empty; give it a value, or leave it out"),
        ("brew", "No idea what 'brew' is; see `inv --list`"),
    ],
)
def test_a_bad_line_is_one_clear_line_and_2(
    kitchen: Kitchen, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    assert kitchen.exit_code(line) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert kitchen.ran == []


def test_a_task_that_python_calls_does_the_same_work(kitchen: Kitchen, capsys: pytest.CaptureFixture[str]) -> None:
    """Case 46: Invoke itself would run the body alone."""
    bake = kitchen.tasks["bake"]
    bake(Context(), cake="tart", degrees=220, topping=["jam"])
    assert kitchen.ran == ["wash", "heat 220 on", "bake tart ['jam'] 1"]
    with pytest.raises(Exit) as raised:
        bake(Context(), cake="mud")
    assert (raised.value.code, raised.value.message) == (2, "inv: --cake: not edible")
    assert len(kitchen.ran) == 3
    kitchen.run("heat")
    assert kitchen.ran[3:] == ["wash", "heat 180"]


def test_short_flags_are_only_those_we_named(kitchen: Kitchen) -> None:
    arguments = {a.names for a in kitchen.tasks["bake"].get_arguments(ignore_unknown_help=True)}
    assert ("cake", "c") in arguments
    assert ("degrees",) in arguments


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    @stage
    def wait(c: Context) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Exit) as raised:
        PlanExecutor(Collection(wait), Config()).execute("wait")
    assert raised.value.code == 130


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left", "/a/f"), "inv: /a/f: No space left; free some space"),
        (OSError(errno.ENOSPC, "No space left"), "inv: No space left; free some space"),
        (OSError(errno.EROFS, "Read-only", "/a"), "inv: /a: Read-only; make it writable, or choose another place"),
    ],
)
def test_what_a_disk_refuses_is_one_line(error: OSError, said: str) -> None:
    @stage
    def write(c: Context) -> None:
        raise error

    with pytest.raises(Exit) as raised:
        PlanExecutor(Collection(write), Config()).execute("write")
    assert (raised.value.message, raised.value.code) == (said, 1)


def test_another_failure_of_the_systems_keeps_its_traceback() -> None:
    @stage
    def read(c: Context) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file", "/a")

    with pytest.raises(FileNotFoundError):
        PlanExecutor(Collection(read), Config()).execute("read")
