"""What we rely on in Invoke 3.0.3. A failure here says which assumption a new version broke."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from invoke import Call, Collection, Config, Context, Executor, Program, task
from invoke.exceptions import ParseError
from invoke.parser.parser import ParseMachine

from bench.settings import ROOT

HEAVY = ("aiohttp", "psycopg", "pydantic", "harbor", "rich", "nostr_sdk", "buzzkit", "orjson", "litellm")


def _inv(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "invoke", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_the_version_is_the_one_these_tests_were_written_for() -> None:
    assert version("invoke") == "3.0.3"


def test_all_calls_are_expanded_before_the_first_body_runs() -> None:
    seen: list[str] = []

    @task
    def one(c: Context) -> None:
        seen.append("one")

    class Noting(Executor):
        def expand_calls(self, calls: list[Call]) -> list[Call]:
            seen.append("expand")
            return super().expand_calls(calls)

    Noting(Collection(one), Config()).execute("one")
    assert seen[-1] == "one"
    assert seen.count("one") == 1


def test_invoke_yaml_names_our_executor_for_plain_inv_also_from_a_folder_below() -> None:
    for cwd in (ROOT, ROOT / "bench"):
        shown = _inv("bench", "--stack", "cloud", "--dry-run", cwd=cwd)
        assert shown.returncode == 2, shown.stderr


def test_without_our_patch_a_parse_error_would_end_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def original(machine: ParseMachine, message: str) -> None:
        raise ParseError(message, machine.context)

    monkeypatch.setattr(ParseMachine, "error", original)
    with pytest.raises(SystemExit) as raised:
        Program(namespace=Collection()).run(["inv", "nonsense"])
    assert raised.value.code == 1


def test_listing_tasks_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['inv', '--list']\n"
        "from invoke.main import program\n"
        "try: program.run()\n"
        "except SystemExit: pass\n"
        f"print('heavy:', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "heavy: []"


def test_every_task_says_in_one_short_line_what_it_does() -> None:
    lines = [line for line in _inv("--list").stdout.splitlines() if line.startswith("  ")]
    assert {line.split()[0] for line in lines} >= set(
        "keys env up schema xbuild gui bench down status test check lock perf".split()  # noqa: SIM905
    )
    assert all(line.rstrip().endswith(".") for line in lines)


def test_every_option_of_every_task_has_its_help() -> None:
    """Case 48."""
    code = (
        "import tasks; every = [(t.name, a) for t in tasks.namespace.tasks.values() for a in t.get_arguments()];"
        "print(len(every) > 60, [f'{name} {a!r}' for name, a in every if not a.help])"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout == "True []\n"


@pytest.mark.parametrize("line", ["bench --dry", "bench -R", "--dry bench", "up --dry"])
def test_invokes_own_dry_run_is_refused_since_it_would_run_the_bodies(line: str) -> None:
    """Case 47."""
    shown = _inv(*line.split())
    assert shown.returncode == 2
    assert "use `inv bench --dry-run`" in shown.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("buzzbench: [", "inv: invoke.yaml:1: not valid YAML: "),
        ("- a list", "inv: invoke.yaml: its sections are no mappings of fields; `git checkout invoke.yaml`"),
        ("buzzbench: 3", "inv: invoke.yaml: buzzbench: 3 is no mapping of settings to values"),
        (
            "buzzbench: {relay_prot: 3}",
            "inv: invoke.yaml: buzzbench.relay_prot: unknown field; did you mean relay_port",
        ),
        ("buzzbench: {state_dir: ''}", "inv: invoke.yaml: buzzbench.state_dir: is empty"),
    ],
)
def test_a_faulty_invoke_yaml_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    own = (ROOT / "invoke.yaml").read_text() if text.startswith("buzzbench: ") and "[" not in text else ""
    (tmp_path / "invoke.yaml").write_text(own + text)
    (tmp_path / "tasks.py").write_text(
        "from invoke import task\nfrom bench import commands\nfrom bench.stages import Stage\n"
        "@task(klass=Stage)\ndef status(c): commands.status(json=False)\n"
    )
    environ = {k: v for k, v in os.environ.items() if k != "BUZZBENCH_STATE_DIR"}
    done = subprocess.run(
        [sys.executable, "-m", "invoke", "status"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(said)
