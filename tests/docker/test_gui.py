"""The desktop app beside a run on the real compose stack; a stand-in for `pnpm` is the app."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import keys
from bench.processes import start_time
from bench.settings import ROOT
from bench.stack.project import PRODUCTION_FILE
from tests.docker.installation import DockerInstallation
from tests.gui import checkout
from tests.gui.checkout import Standins
from tests.pipeline import DATASET, wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]


def test_the_app_opens_beside_a_run_and_outlives_it(project: DockerInstallation, tmp_path: Path) -> None:
    buzz = checkout.make(tmp_path / "buzz")
    (buzz / PRODUCTION_FILE).parent.mkdir(parents=True)
    ours = (ROOT / "compose" / "compose.yaml").read_text(encoding="utf-8")
    # Buzz's own file publishes the relay's port as the variable says, address and all.
    (buzz / PRODUCTION_FILE).write_text(ours.replace("127.0.0.1:${BUZZ_HTTP_PORT", "${BUZZ_HTTP_PORT"))
    standins = Standins.make(tmp_path / "bin", docker=False)
    environment = {**project.with_stack, **standins.environment, "BUZZBENCH_BUZZ_SOURCE": str(buzz)}
    command = ["bench", "--path", str(DATASET / "split-and-merge"), "--rehearsal", "-k", "1"]
    done = project.inv(*command, "--stack", "compose", "--gui", **environment)
    try:
        assert done.returncode == 0, done.stderr
        assert "gui: watch, don't type: a message mid-trial taints the run\n" in done.stderr
        app = standins.wait_for_app()
        given = standins.environment_of("pnpm-exec")
        assert given["BUZZ_PRIVATE_KEY"] == keys.load(project.state_dir).user.secret
        assert given["BUZZ_RELAY_URL"] == f"ws://localhost:{project.port}"
    finally:
        standins.close()
    wait_until(lambda: start_time(app) is None)


def test_what_the_app_needs_is_said_before_anything_starts(project: DockerInstallation, tmp_path: Path) -> None:
    command = ["bench", "--path", str(DATASET / "split-and-merge"), "--rehearsal", "--stack", "compose", "--gui"]
    done = project.inv(*command, BUZZBENCH_BUZZ_SOURCE="", DISPLAY="", WAYLAND_DISPLAY="")
    assert done.returncode == 3
    assert "inv: --gui: no checkout of Buzz is named; give --source to `inv gui`, or set " in done.stderr
    assert "inv: --gui: there is no display; " in done.stderr
    assert not (project.state_dir / "state.json").exists()
