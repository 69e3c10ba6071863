"""`inv gui`: the Buzz desktop app as the benchmark user, from a checkout of Buzz, on the compose stack (row G1).

`inv gui` stays until the app is closed; `bench --gui` opens it and goes on. The app is in a session of its own
(`bench.gui.app`): the end of a run doesn't close it.
"""

from __future__ import annotations

import subprocess
import sys

from bench import settings as settings_module
from bench.errors import BuzzbenchError, Problem, raise_problems
from bench.keys import State, load
from bench.settings import Settings
from bench.stack import StackAddress, address

DO_NOT_TYPE = "watch, don't type: a message mid-trial taints the run"


def gui(source: str) -> None:
    """Open the app and wait until it is closed. `source` is the flag, empty where none was given.

    Raises InvalidInput or MachineLacks with all that stands in the way, BuzzbenchError where the app fails.
    """
    from bench.gui import needs, opened

    settings = settings_module.load({"buzz_source": source or None})
    named_by = "--source" if source else settings.origins["buzz_source"]
    stack = address(settings.state_dir)
    problems = list(needs.problems("gui", settings, named_by))
    if stack is None or stack.kind != "compose":
        what = "the Docker stack is not up" if stack is None else "the stack that is up is the embedded one"
        fix = "run `inv up --stack compose`" if stack is None else "run `inv down`, then `inv up --stack compose`"
        problems.append(Problem("gui", what, fix, lacks=True))
    raise_problems(problems)
    assert stack
    if app := _open(settings, load(settings.state_dir), stack, log=False):
        opened.wait(app)


def open_beside(settings: Settings, state: State, stack: StackAddress) -> None:
    """Open the app beside a run, which goes on at once, whatever becomes of the app."""
    try:
        _open(settings, state, stack, log=True)
    except BuzzbenchError as error:
        _say(f"{error}; the run goes on without the app")


def _open(settings: Settings, state: State, stack: StackAddress, *, log: bool) -> subprocess.Popen[bytes] | None:
    """The process that prepares and becomes the app, None where it is open already."""
    from bench.gui import member, opened

    if found := opened.running(settings.state_dir):
        _say(f"the app is open already (process {found.pid}); {DO_NOT_TYPE}")
        return None
    member.add(settings.state_dir, state.user.public)
    process = opened.begin(settings, stack.relay_url, state.user, log=log)
    where = f"; what it says is in {opened.log(settings.state_dir)}" if log else ""
    _say(f"the app opens as the benchmark user {state.user.npub}, the first time after minutes of building{where}")
    _say(DO_NOT_TYPE)
    return process


def _say(text: str) -> None:
    print(f"gui: {text}", file=sys.stderr, flush=True)
