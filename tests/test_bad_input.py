"""Bad input: one clear line for each fault, the right exit code, nothing started and nothing written."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bench.errors import BuzzbenchError
from bench.settings import ROOT
from tests.pipeline import new_installation
from tests.planning.kit import SCRIPT, Project, project


@dataclass(frozen=True)
class Bad:
    """An input and what is said of it. `arrange` gives options; without any, one good task is rehearsed, dry.

    `typed` is what is said where the command line, which looks first, has words of its own; `lines` counts the faults.
    """

    name: str
    arrange: Callable[[Project], dict[str, Any]]
    said: str
    exit_code: int = 2
    typed: str = ""
    lines: int = 1


def _toml(home: Project) -> dict[str, Any]:
    (home.tasks / "good/task.toml").write_text("[task\n")
    return {}


def _manifest(**changes: Any) -> Callable[[Project], dict[str, Any]]:
    return lambda home: {"manifest": home.manifest(home.team(**changes))}


def _member(number: int, **changes: Any) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        data = home.team()
        data["roster"][number] |= changes
        return {"manifest": home.manifest(data)}

    return arrange


def _second_task(name: str, layer: str | None, **given: Any) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        home.task(name, layer, **given)
        return {"include": ("good",)}  # Also the faults of a task that is not selected are said.

    return arrange


def _options(**given: Any) -> Callable[[Project], dict[str, Any]]:
    return lambda home: given


def _good_toml(more: str) -> Callable[[Project], dict[str, Any]]:
    """The good task with something more in its task.toml, in a run: a dry one doesn't ask Harbor."""

    def arrange(home: Project) -> dict[str, Any]:
        file = home.tasks / "good/task.toml"
        file.write_text(file.read_text() + more)
        return {"dry_run": False, "environment": "sandbox"}

    return arrange


def _endpoints(text: str) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        (home.root / "endpoints.json").write_text(text)
        return {"manifest": home.manifest(home.team()), "endpoint_config": home.root / "endpoints.json"}

    return arrange


def _text(name: str, text: str, option: str) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        (home.root / name).write_text(text)
        return {option: home.root / name}

    return arrange


def _script(text: str) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        (home.tasks / "good/rehearsal/good.yaml").write_text(text)
        return {}

    return arrange


def _persona(text: str) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        data = home.team()
        data["roster"][0] = data["roster"][0] | {"prompt": home.persona(text, "lint")}
        return {"manifest": home.manifest(data)}

    return arrange


def _without(file: str) -> Callable[[Project], dict[str, Any]]:
    def arrange(home: Project) -> dict[str, Any]:
        (home.tasks / file).unlink()
        return {}

    return arrange


def _number(option: str, name: str, given: str) -> Bad:
    said = f"{option}: {given} is not a whole number from 1"
    typed = f"{option.partition('/')[0]}: {given!r} is no whole number of at least 1"
    return Bad(f"{option} {given}", _options(**{name: given}), said, typed=typed)


PRICE = {"input": 3, "output": 15}
WRONG_HASH = {"path": "personas/own.md", "sha256": "0" * 64}

TABLE = [
    Bad("no such path", lambda h: {"path": h.root / "nope"}, "nope: no such path"),
    Bad("a file", lambda h: {"path": h.tasks / "good/task.toml"}, "task.toml: is a file; give a task's directory"),
    Bad("an empty dataset", lambda h: {"path": h.root / "manifests"}, "manifests: no tasks found"),
    Bad("broken TOML", _toml, "good/task.toml:1: not valid TOML: "),
    Bad("no layer", _second_task("b", None), "b/task.toml: [metadata].evaluation_layer: is missing"),
    Bad("unknown layer of a task", _second_task("b", "smoke"), "unknown layer 'smoke'; it is regression or workflow"),
    Bad(
        "duplicate names",
        _second_task("b", "workflow", full_name="buzz/good"),
        "good/task.toml:2: [task].name: buzz/good is also the name of b",
    ),
    _number("--attempts/-k", "attempts", "0"),
    _number("--attempts/-k", "attempts", "-1"),
    _number("--attempts/-k", "attempts", "many"),
    _number("--attempts/-k", "attempts", "1.5"),
    _number("--n-concurrent/-n", "n_concurrent", "0"),
    *(
        Bad(f"a budget of {given}", _options(budget_usd=given), f"--budget-usd: {given} is no sum of money; give USD")
        for given in ("0", "-1", "much", "nan", "1e12")
    ),
    *(
        Bad(
            f"--budget-{unit} {given}",
            _options(**{f"budget_{unit}": given}),
            f"--budget-{unit}: {given} is not a whole",
        )
        for unit, given in (("calls", "0"), ("tokens", "1e6"))
    ),
    Bad("-d and -p", _options(dataset="x"), "--dataset and --path: exclude each other; give one of the two"),
    Bad(
        "a bad dataset name",
        _options(path=None, dataset="a b", rehearsal=False),
        "--dataset: 'a b' is no dataset's name",
    ),
    Bad(
        "a rehearsal of a registry", _options(path=None), "--rehearsal: the tasks of terminal-bench/terminal-bench-2-1"
    ),
    Bad(
        "--layer outside the dataset",
        lambda h: {"path": h.task("x", None, folder="other"), "layer": "workflow"},
        "--layer: only tasks under buzz-dataset/ have layers, and ",
    ),
    Bad(
        "--layer without a path",
        _options(path=None, layer="workflow", rehearsal=False),
        "--layer: only tasks under buzz-dataset/",
    ),
    Bad("unknown --layer", _options(layer="regresion"), "--layer: unknown layer 'regresion'; it is regression or"),
    Bad("nothing of a layer", _options(layer="workflow"), "--layer workflow: selects none of the 1 tasks"),
    Bad("an unmatched glob", _options(include=("god",)), "--include-task god: matches no task; the nearest are good"),
    Bad("an unmatched exclusion", _options(exclude=("zz*",)), "--exclude-task zz*: matches no task; there are good"),
    Bad("all excluded", _options(exclude=("*",)), "--exclude-task *: selects none of the 1 tasks"),
    Bad("no such manifest", lambda h: {"manifest": h.root / "nope.yaml"}, "nope.yaml: no such manifest"),
    Bad(
        "a manifest's bare name",
        lambda h: {"manifest": Path("builtin-pair")},
        "did you mean manifests/builtin-pair.yaml",
    ),
    Bad("a wrong hash", _member(0, prompt=WRONG_HASH), "has changed: the manifest pins 0000"),
    Bad("an unknown endpoint", _member(1, endpoint="gpt"), "no endpoint gpt, which the manifest names; it has claude"),
    Bad("two orchestrators", _member(1, kind="orchestrator", count=1), "a team has exactly one"),
    Bad("no orchestrator", _member(0, kind="worker"), "has no orchestrator"),
    Bad("a price missing", _manifest(prices={}), "no price for claude-sonnet-4-6 (orch, worker)"),
    Bad("an unknown field", _manifest(team="x"), "team: unknown field"),
    Bad("an unknown harness", _member(0, harness="claude"), "roster[0].harness: 'claude' is not one of 'buzz-agent',"),
    Bad(
        "no such endpoint file",
        lambda h: {"manifest": h.manifest(h.team()), "endpoint_config": h.root / "nope.json"},
        "nope.json: no such endpoint file",
    ),
    Bad(
        "a scripted model without a rehearsal",
        lambda h: {"rehearsal": False, "manifest": h.root / "manifests/rehearsal.yaml", "environment": "sandbox"},
        "the endpoint scripted answers only in a rehearsal; add --rehearsal",
    ),
    Bad(
        "a key missing",
        lambda h: {"rehearsal": False, "dry_run": False, "environment": "sandbox", "manifest": h.manifest(h.team())},
        "ANTHROPIC_API_KEY is not set; set it, or go on without a key",
    ),
    Bad("unknown environment", _options(environment="dokcer"), "--environment/-e: unknown environment 'dokcer'; did"),
    Bad("unknown stack", _options(stack="embeded"), "--stack: unknown stack 'embeded'; it is embedded or compose; did"),
    Bad("a bad job name", _options(job_name="../x"), "--job-name: '../x' is no job name"),
    Bad("a long job name", _options(job_name="x" * 129), "is no job name: letters, digits, dots, dashes"),
    Bad("jobs in a file", lambda h: {"jobs_dir": h.tasks / "good/task.toml"}, "jobs are written into a directory"),
    Bad("a script alone", _options(rehearsal=False, script="good"), "--script: only a rehearsal follows a script"),
    Bad("no such script", _options(script="wrong"), "--rehearsal: no rehearsal/wrong.yaml in good; leave them out"),
    Bad("--upload of a rehearsal", _options(upload=True), "--upload: a rehearsal measures nothing and can't be"),
    Bad("--gui on the embedded stack", _options(gui=True), "--gui: the desktop app needs the Docker stack; add"),
    Bad(
        "no Docker for a plan that needs it",
        _options(rehearsal=False, dry_run=False, environ={"ANTHROPIC_API_KEY": "x", "PATH": ""}),
        "--stack compose: there is no docker command; install Docker with its Compose plugin, or use --stack embedded",
        exit_code=3,
    ),
    Bad("a task.toml that is a folder's", lambda h: {"path": h.tasks.parent}, "no tasks found"),
    Bad(
        "a task without instruction",
        _without("good/instruction.md"),
        "has no instruction.md",
    ),
    Bad("a task without tests", _without("good/tests/test.sh"), "has no tests/test.sh"),
    Bad(
        "a name that is no name", _second_task("b", "workflow", full_name="b"), "[task].name: 'b' is no task name; its"
    ),
    Bad(
        "a timeout below nothing", _good_toml("[agent]\ntimeout_sec = -1\n"), "[agent].timeout_sec: -1 is no number of"
    ),
    Bad("a timeout that is no number", _good_toml("[agent]\ntimeout_sec = nan\n"), "[agent].timeout_sec: nan is no"),
    Bad(
        "cpus in words",
        _good_toml('[environment]\ncpus = "many"\n'),
        "good/task.toml:6: [environment].cpus: 'many' is no whole number",
    ),
    Bad(
        "memory in a strange unit", _good_toml('[environment]\nmemory = "2Q"\n'), "environment: invalid size format: 2Q"
    ),
    Bad("no time for work", _good_toml("[agent]\ntimeout_sec = 8\n"), "buzz/good: no time is left for work"),
    _number("--n-tasks", "n_tasks", "0"),
    Bad("too many at once", _options(n_concurrent="100000"), "--n-concurrent/-n: 100000 is not a whole number from 1"),
    Bad(
        "a key missing for a baseline",
        _options(rehearsal=False, dry_run=False, agent="terminus-2", environment="sandbox"),
        "not set; set it, or go on without a key: a local model with --manifest manifests/builtin-solo-local.yaml",
    ),
    Bad(
        "a script alone, whatever else a run would lack",
        _options(rehearsal=False, dry_run=False, script="good", environ={"PATH": ""}),
        "--script: only a rehearsal follows a script; add --rehearsal",
    ),
    Bad(
        "no such agent, whatever else a run would lack",
        _options(rehearsal=False, dry_run=False, agent="terminus", environ={"PATH": ""}),
        "--agent: Harbor can't send terminus's model calls to the gateway",
    ),
    Bad("an endless price", _options(budget_usd="1e999999999"), "--budget-usd: 1e999999999 is no sum of money"),
    Bad("a manifest from a device", lambda h: {"manifest": Path("/dev/zero")}, "/dev/zero: is a pipe or a device, no"),
    Bad(
        "half a character", _endpoints('{"claude": {"base_url": "http://\\ud800"}}'), "holds half a character, such as"
    ),
    Bad("--max-retries 99", _options(max_retries="99"), "--max-retries: 99 is not a whole number from 0 to 20"),
    Bad(
        "an unknown agent",
        _options(rehearsal=False, agent="oracel"),
        "Harbor has no agent 'oracel'; did you mean oracle",
    ),
    Bad(
        "an agent that can't be metered",
        _options(rehearsal=False, agent="gemini-cli"),
        "--agent: Harbor can't send gemini-cli's model calls to the gateway, which would meter and price them",
    ),
    Bad("the oracle without a solution", _options(rehearsal=False, agent="oracle"), "no solution/solve.sh in good"),
    Bad(
        "a baseline in a rehearsal", _options(agent="nop"), "takes the team's place, so that --rehearsal has no effect"
    ),
    Bad(
        "an option of a team",
        _options(agent_kwarg=("x=1",)),
        "--agent-kwarg: a team has no option x: its manifest says",
    ),
    Bad(
        "an option without a value", _options(environment_kwarg=("x",)), "--environment-kwarg x: its form is name=value"
    ),
    Bad(
        "an option of the sandbox", _options(environment_kwarg=("network=host",)), "the sandbox takes no option network"
    ),
    Bad(
        "an unknown option of docker",
        _options(environment="docker", environment_kwarg=("x=1",)),
        "--environment-kwarg: invalid kwargs for environment 'docker': Unknown option 'x'",
    ),
    Bad(
        "no such harbor config",
        lambda h: {"harbor_config": h.root / "no.yaml"},
        "no.yaml: no such Harbor configuration",
    ),
    Bad("a harbor config in TOML", _text("h.toml", "", "harbor_config"), "Harbor reads .yaml, .yml and .json files"),
    Bad(
        "attempts in a harbor config",
        _text("h.yaml", "n_attempts: 9\n", "harbor_config"),
        "h.yaml:1: n_attempts: can't be set here: it is given by --attempts; remove it",
    ),
    Bad(
        "no judge in a harbor config",
        _text("h.yaml", "verifier: {disable: true}\n", "harbor_config"),
        "nothing would be",
    ),
    Bad("a manifest that is no YAML", _text("m.yaml", "a: [\n", "manifest"), "m.yaml:2: not valid YAML"),
    Bad("a manifest given twice over", _text("m.yaml", "a: 1\na: 2\n", "manifest"), "a: given twice, first on line 1"),
    Bad("a manifest that is a directory", lambda h: {"manifest": h.root}, "is a directory, no manifest"),
    Bad("a team without time", _manifest(trial_budget={}), "trial_budget.timeout_seconds: is missing"),
    Bad(
        "a price per token",
        _manifest(prices={"claude-sonnet-4-6": PRICE | {"input": 3e-6}}),
        "the unit is USD per million",
    ),
    Bad(
        "a price in micro-dollars", _manifest(prices={"claude-sonnet-4-6": PRICE | {"input": 3e6}}), "is over 1000: the"
    ),
    Bad(
        "a negative price",
        _manifest(prices={"claude-sonnet-4-6": PRICE | {"output": -1}}),
        "-1 is no price; give USD per",
    ),
    Bad(
        "a cached token dearer than a fresh one",
        _manifest(prices={"claude-sonnet-4-6": PRICE | {"cached_input": 30}}),
        "cached_input: 30 is more than the 3 of input",
    ),
    Bad(
        "a persona that calls a stranger", _persona("Hello\nask @critic\n"), "line 2, mentions @critic, whom the roster"
    ),
    Bad("two members of one name", _member(1, id="orch"), "orch is already a name of roster[0]"),
    Bad("a cap of nothing", _member(0, budget={"max_tokens": 0}), "roster[0].budget.max_tokens: 0 is not at least"),
    Bad(
        "a cap below one call",
        _member(0, budget={"max_tokens": 9}, generation={"max_output_tokens": 4096}),
        "roster[0].budget.max_tokens: 9 is below generation.max_output_tokens 4096: no call could be made",
    ),
    Bad("an endpoint file that is no JSON", _endpoints("{"), "endpoints.json:1: not valid JSON"),
    Bad(
        "an endpoint without a provider",
        _endpoints('{"claude-sonnet-4-6": {}}'),
        "claude-sonnet-4-6.provider: is missing",
    ),
    Bad(
        "a key in place of its variable",
        _endpoints('{"claude-sonnet-4-6": {"provider": "anthropic", "api_key_env": "sk-1"}}'),
        "claude-sonnet-4-6.api_key_env: is not a variable's name",
    ),
    Bad(
        "an endpoint file that nobody asks",
        lambda h: {"endpoint_config": h.root / "nope.json"},
        "--endpoint-config: rehearsal asks no endpoint of a file in a rehearsal, so that it has no effect",
    ),
    Bad(
        "an endpoint given twice",
        _endpoints('{"a": {"provider": "openai"},\n "a": {"provider": "openai"}}'),
        "endpoints.json:2: a: given twice, first on line 1",
    ),
    Bad(
        "an endpoint of a provider in a list",
        _endpoints('{"claude-sonnet-4-6":\n {"provider": ["openai"]}}'),
        "endpoints.json:2: claude-sonnet-4-6.provider: a list of 1 is not supported; it is anthropic or openai",
    ),
    Bad(
        "a harbor config that is nowhere",
        lambda h: {"harbor_config": h.root / "nope"},
        "nope: no such Harbor configuration",
    ),
    Bad(
        "a condition that leads elsewhere",
        _manifest(condition="../x"),
        "condition: '../x' is no condition's name: letters, digits, blanks and",
    ),
    Bad("several globs in one", _options(include=("good,bad",)), "give one glob each time: --include-task good"),
    Bad(
        "much that a baseline makes idle",
        lambda h: {"agent": "nop", "manifest": h.manifest(h.team()), "budget_usd": "1"},
        "so that --rehearsal, --manifest and --budget-usd have no effect; leave out --rehearsal, --manifest and",
    ),
    Bad("a cassette that is nowhere", lambda h: {"rehearsal": False, "replay": h.root / "no.jsonl"}, "no.jsonl: "),
    Bad("a script without its list", _script("orch: 3\n"), "rehearsal/good.yaml:1: orch: 3 is no list"),
    Bad(
        "a step that does two things",
        _script("orch:\n  - name: a\n    do:\n      - {say: x, run: y}\n"),
        "rehearsal/good.yaml:4: orch[0].do[0]: give exactly one of say, run, send, done, tool",
    ),
    Bad("a script that is no YAML", _script("orch: [\n"), "rehearsal/good.yaml:"),
    Bad(
        "a script for strangers",
        _script(SCRIPT + "critic:\n  - name: x\n    do: [{say: x}]\n"),
        "is for critic, whom the roster of",
    ),
    Bad(
        "a script without a lead", _script(SCRIPT.replace("orch", "worker")), "has no steps for orch, the orchestrator"
    ),
]


@pytest.mark.parametrize("bad", TABLE, ids=lambda bad: bad.name)
def test_bad_input_is_refused_with_one_clear_line(tmp_path: Path, bad: Bad) -> None:
    home = project(tmp_path)
    home.task("good")
    options = bad.arrange(home)
    before = home.files()
    with pytest.raises(BuzzbenchError) as caught:
        home.plan(**options)
    lines = str(caught.value).splitlines()
    assert len([line for line in lines if bad.said in line]) == 1
    assert caught.value.exit_code == bad.exit_code
    assert home.files() == before


CODE = ("bench", "compose", "tasks.py", "invoke.yaml", ".venv")
RENAMED = {"include": "include-task", "exclude": "exclude-task"}


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's own code in a folder of its own, so that what lies under its buzz-dataset/ is the test's."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "bench", root / "bench")
    shutil.copytree(ROOT / "compose", root / "compose")
    for name in ("tasks.py", "invoke.yaml"):
        shutil.copy2(ROOT / name, root / name)
    (root / ".venv").symlink_to(sys.prefix)
    return root


@pytest.fixture
def home(code: Path) -> Project:
    """A project with one good task; whatever the test before left is gone."""
    for path in code.iterdir():
        if path.name not in CODE:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    made = project(code)
    made.task("good")
    return made


def _files(home: Project) -> set[Path]:
    return {path for path in home.files() if "__pycache__" not in path.parts and ".venv" not in path.parts}


def _words(home: Project, options: dict[str, Any]) -> list[str]:
    """The command line that gives these options."""
    words = ["bench"]
    for name, value in ({"path": home.tasks, "rehearsal": True, "dry_run": True} | options).items():
        flag = f"--{RENAMED.get(name, name).replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value not in (None, False):
            for each in value if isinstance(value, tuple) else (value,):
                words.append(f"{flag}={each}")
    return words


@pytest.mark.slow
@pytest.mark.parametrize("bad", TABLE, ids=lambda bad: bad.name)
def test_inv_refuses_bad_input_with_one_clear_line(home: Project, tmp_path: Path, bad: Bad) -> None:
    """The same through `inv`, from the command line to the exit code."""
    options = bad.arrange(home)
    environ = options.pop("environ", {})
    installation = replace(new_installation(tmp_path / "home"), project=home.root)
    before = _files(home)
    done = installation.inv(*_words(home, options), **environ)
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (bad.exit_code, "", bad.lines), done.stderr
    assert all(line.startswith("inv: ") for line in lines)
    assert len([line for line in lines if (bad.typed or bad.said) in line]) == 1, done.stderr
    assert _files(home) == before
    assert not installation.home.exists()
    assert installation.processes() == []


def _damaged_state(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    (state_dir / "state.json").write_text("{")


COMMANDS: list[tuple[list[str], str, dict[str, str]]] = [
    (["bench", "--atempts", "1"], "see `inv --help bench`", {}),
    (["bench", "-l", "0"], "inv: --n-tasks: '0' is no whole number of at least 1", {}),
    (["bench", "--path="], "inv: --path is empty; give it a value, or leave it out", {}),
    (["bench", "--path", "a", "--path", "b"], "No idea what 'b' is (is --path given twice?)", {}),
    (["bench", "--path", "a", "--rehersal"], "No idea what '--rehersal' is (did you mean --rehearsal?)", {}),
    (["bench", "buzz-dataset"], "No idea what 'buzz-dataset' is (did you mean --path buzz-dataset?)", {}),
    (["report", "mine"], "No idea what 'mine' is (did you mean --job mine?); see `inv --help report`", {}),
    (["bench", ""], "inv: No idea what '' is; see `inv --help bench`", {}),
    (["benhc"], "inv: No idea what 'benhc' is (did you mean bench?); see `inv --list`", {}),
    (["bench", "--dry"], "use `inv bench --dry-run`", {}),
    (["bench", "--resume", "nope"], "inv: --resume nope: no such job", {}),
    (["bench", "--resume", "nope", "--manifest", "m"], "inv: --manifest: a resumed job goes on with its own input", {}),
    (["brew"], "inv: No idea what 'brew' is; see `inv --list`", {}),
    (["up", "--stack", "kubernetes"], "inv: --stack: no such stack: 'kubernetes'; give one of embedded, compose", {}),
    (["report", "--job", "nope"], "inv: --job nope: no such job", {}),
    (["report"], "no jobs here yet; run `inv bench`", {}),
    (["spend", "--job", "nope"], "inv: --job nope: no such job", {}),
    (["reprice", "--prices", "nope.yaml"], "inv: nope.yaml: no such price sheet", {}),
    (["reprice"], "inv: --prices: no price sheet is named; give a file with", {}),
    (["reprice", "--prices", "/dev/zero"], "inv: /dev/zero: is a pipe or a device, no price sheet; give a file", {}),
    (["bench", "--rehearsal=yes"], "inv: No idea what 'yes' is (--rehearsal takes no value); see `inv --help", {}),
    (["bench", "-n", "9" * 5000], "is no whole number of at least 1", {}),
    (["prices", "--model", "foo"], "give the name that its provider uses, such as claude-sonnet-4-6", {}),
    (["up"], "BUZZBENCH_JOBS_DIR: '~nobody-here/x' is in the home of a user", {"BUZZBENCH_JOBS_DIR": "~nobody-here/x"}),
    (["prices"], "inv: --model: no model is named; give the name that its provider uses", {}),
    (["perf", "--only", "nope"], "inv: --only: no such benchmark: 'nope'", {}),
    (["logs", "--service", "nope"], "inv: --service: there is no 'nope' in this stack", {}),
    (["logs", "--lines", "0"], "inv: --lines: '0' is no whole number of at least 1", {}),
    (["xbuild", "--manifest", "nope.yaml"], "inv: nope.yaml: no such manifest", {}),
    (["doctor", "--path", "nowhere"], "inv: nowhere: no such path", {}),
    (["doctor", "--manifest", "rehersal"], "no such manifest; did you mean manifests/rehearsal.yaml", {}),
    (["doctor", "--manifest", "nope.yaml"], "inv: nope.yaml: no such manifest", {}),
    (["doctor", "--endpoint-config", "nope.json"], "inv: nope.json: no such endpoint file", {}),
    (["validate", "-e", "sandbox"], "inv: --environment/-e: only --run plays tasks; add --run", {}),
    (["validate", "-n", "2"], "inv: --n-concurrent/-n: only --run plays tasks; add --run", {}),
    (["validate", "--path", "nowhere"], "inv: nowhere: no such path", {}),
    (["validate", "--run", "-e", "dokcer"], "inv: --environment/-e: unknown environment 'dokcer'; did", {}),
    (["status"], "BUZZBENCH_RELAY_PORT: '99999' is no TCP port", {"BUZZBENCH_RELAY_PORT": "99999"}),
    (["up"], "BUZZBENCH_GIT_PROBE: 'maybe' is neither true nor false", {"BUZZBENCH_GIT_PROBE": "maybe"}),
    (["bench"], "BUZZBENCH_LONGEST_WAIT_S: 'x' is no whole number", {"BUZZBENCH_LONGEST_WAIT_S": "x"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "said", "environ"), COMMANDS, ids=[" ".join(row[0]) for row in COMMANDS])
def test_a_bad_command_ends_with_2_and_leaves_nothing(
    tmp_path: Path, words: list[str], said: str, environ: dict[str, str]
) -> None:
    installation = new_installation(tmp_path)
    done = installation.inv(*words, **environ)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert said in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("task", ["keys", "env", "up", "bench"])
def test_a_damaged_state_stops_whatever_needs_it(tmp_path: Path, task: str) -> None:
    installation = new_installation(tmp_path)
    _damaged_state(installation.state_dir)
    rehearsal = ["--path", "buzz-dataset", "--rehearsal"] if task == "bench" else []
    done = installation.inv(task, *rehearsal)
    assert done.returncode == 2
    assert "state.json:1: is damaged (Expecting property name" in done.stderr
    assert "restore it from a backup, or delete it to begin anew" in done.stderr
    assert (installation.state_dir / "state.json").read_text() == "{"
    assert installation.processes() == []


def test_there_are_enough_of_them() -> None:
    assert len(TABLE) + len(COMMANDS) >= 120
    assert len({bad.name for bad in TABLE}) == len(TABLE)
