"""`inv gui` from a checkout: the user becomes a member, and one app opens with the key in its environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from bench import keys
from bench.gui import open_beside, opened
from bench.processes import identify, start_time
from bench.settings import Settings
from bench.stack import address
from tests.gui import checkout
from tests.gui.checkout import Desk, Standins
from tests.pipeline import new_installation, stop, wait_until

WATCH = "gui: watch, don't type: a message mid-trial taints the run\n"


@dataclass(frozen=True)
class Place:
    """An installation whose stack is up as far as its files say, a checkout, and stand-ins."""

    installation: Desk
    buzz: Path
    standins: Standins
    state: keys.State

    @property
    def arguments(self) -> list[str]:
        return ["gui", "--source", str(self.buzz)]

    @contextmanager
    def start(self) -> Iterator[subprocess.Popen[str]]:
        """The command under way; over at the end, also where a test fails meanwhile."""
        process = self.installation.start(*self.arguments)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Place]:
    standins = Standins.make(tmp_path / "bin")
    home = tmp_path / "home"
    installation = Desk(home, new_installation(home).port, standins.environment)
    state = checkout.pretend_stack(installation.state_dir)
    made = Place(installation, checkout.make(tmp_path / "buzz"), standins, state)
    # Its own command line is there already: on a busy machine building it takes long, and test_app.py has that.
    checkout.build_nothing(made.buzz)
    yield made
    made.standins.close()
    wait_until(lambda: made.standins.app is None or start_time(made.standins.app) is None)


def test_the_app_opens_as_the_user_and_the_command_ends_when_it_is_closed(desk: Place) -> None:
    with desk.start() as process:
        app = desk.standins.wait_for_app()
        command = "compose --project-name buzz-benchmark-test exec -T relay buzz-admin add-member --pubkey"
        assert desk.standins.called("docker") == [*command.split(), desk.state.user.public]
        directory, *arguments = desk.standins.called("pnpm-exec")
        assert directory == str(desk.buzz / "desktop")
        assert arguments[:4] == ["exec", "tauri", "dev", "--config"]
        assert json.loads(arguments[4]) == {
            "identifier": "xyz.block.buzz.app.benchmark",
            "productName": "Buzz Benchmark",
        }
        environment = desk.standins.environment_of("pnpm-exec")
        assert environment["BUZZ_RELAY_URL"] == "ws://localhost:3999"
        assert environment["BUZZ_PRIVATE_KEY"] == desk.state.user.secret
        assert "SOME_API_KEY" not in environment
        assert "BUZZ_PRIVATE_KEY" not in desk.standins.environment_of("pnpm-install")
        assert opened.running(desk.installation.state_dir)
        assert desk.state.user.secret.encode() not in Path(f"/proc/{app}/cmdline").read_bytes()
        desk.standins.close()
        said, complained = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert f"gui: the app opens as the benchmark user {desk.state.user.npub}, " in complained
    assert WATCH in complained
    assert "gui: installing the app's packages\n" in complained
    assert "pnpm speaks" in complained
    assert opened.running(desk.installation.state_dir) is None
    for path in desk.installation.state_dir.rglob("*"):
        assert path.name == "state.json" or not path.is_file() or desk.state.user.secret not in path.read_text()


def test_ctrl_c_closes_the_app(desk: Place) -> None:
    with desk.start() as process:
        app = desk.standins.wait_for_app()
        assert stop(process, signal.SIGINT) == 130
    assert start_time(app) is None


def test_an_app_that_fails_is_said(desk: Place) -> None:
    with desk.start() as process:
        desk.standins.wait_for_app()
        desk.standins.close(7)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.endswith("inv: gui: it ended with 7: see the lines above\n")


def test_it_is_opened_once(desk: Place) -> None:
    with desk.start() as process:
        app = desk.standins.wait_for_app()
        again = desk.installation.inv(*desk.arguments)
        assert again.returncode == 0
        assert again.stderr == f"gui: the app is open already (process {app}); {WATCH.removeprefix('gui: ')}"
        desk.standins.close()
        process.communicate(timeout=60)


def test_a_relay_that_takes_no_member_keeps_the_app_closed(desk: Place) -> None:
    (desk.standins.directory / "docker.fails").touch()
    done = desk.installation.inv(*desk.arguments)
    assert done.returncode == 1
    assert done.stderr == "inv: docker compose --project-name: relay is not running\n"
    assert desk.standins.app is None


def test_without_the_docker_stack_one_line_says_so(desk: Place) -> None:
    (desk.installation.state_dir / "stack.json").unlink()
    done = desk.installation.inv(*desk.arguments)
    assert (done.returncode, done.stderr) == (
        3,
        "inv: gui: the Docker stack is not up; run `inv up --stack compose`\n",
    )
    (desk.installation.state_dir / "stack.json").write_text(json.dumps(checkout.address("embedded")))
    done = desk.installation.inv(*desk.arguments)
    assert done.stderr == (
        "inv: gui: the stack that is up is the embedded one; run `inv down`, then `inv up --stack compose`\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="it is about where Linux keeps things")
def test_fresh_forgets_what_an_app_kept_that_was_opened_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "data" / "xyz.block.buzz.app.benchmark"
    kept.mkdir(parents=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    record = tmp_path / "gui.json"
    opened.forget(tmp_path)
    assert kept.exists(), "none was opened from here"
    me = identify(os.getpid())
    assert me
    record.write_text(json.dumps(asdict(me)))
    opened.forget(tmp_path)
    assert kept.exists(), "it is open"
    record.write_text(json.dumps(asdict(me) | {"started": "long ago"}))
    opened.forget(tmp_path)
    assert not kept.exists()
    assert not record.exists()


@pytest.fixture
def beside(desk: Place, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings under which this process opens the app."""
    for name, value in desk.standins.environment.items():
        monkeypatch.setenv(name, value)
    return Settings(state_dir=desk.installation.state_dir, buzz_source=desk.buzz)


def test_beside_a_run_it_speaks_in_its_log(desk: Place, beside: Settings, capfd: pytest.CaptureFixture[str]) -> None:
    stack = address(beside.state_dir)
    assert stack
    open_beside(beside, desk.state, stack)
    desk.standins.wait_for_app()
    said = capfd.readouterr().err
    assert f"; what it says is in {beside.state_dir}/logs/gui.log\n{WATCH}" in said
    assert "pnpm speaks" not in said
    assert "pnpm speaks" in opened.log(beside.state_dir).read_text()


def test_a_run_goes_on_without_an_app_that_cannot_open(
    desk: Place, beside: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    (desk.standins.directory / "docker.fails").touch()
    stack = address(beside.state_dir)
    assert stack
    open_beside(beside, desk.state, stack)
    said = capfd.readouterr().err
    assert said == "gui: docker compose --project-name: relay is not running; the run goes on without the app\n"
