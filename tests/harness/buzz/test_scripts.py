"""The scripts that start, look at and end a team's processes, with plain programs in the place of Buzz's."""

from __future__ import annotations

import http.server
import os
import platform
import shlex
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.harness.buzz import kit
from tests.pipeline import wait_until
from tests.ports import free_port
from tests.xbuild.test_elf import program

READY = "echo 'INFO subscribed to channel c-1'\n"


@dataclass
class Team:
    """A kit on this machine. `acp` is what stands for buzz-acp, a shell script."""

    home: Path
    port: int

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def make(
        self,
        acp: str,
        *,
        agents: tuple[str, ...] = ("orch", "worker-1"),
        port: int | None = None,
        collected: Path | None = None,
    ) -> None:
        programs = self.home / "bin"
        programs.mkdir()
        (programs / "buzz-acp").write_text(f"#!/bin/bash\n{acp}")
        (programs / "buzz-acp").chmod(0o755)
        (self.home / "kit").mkdir()
        routes = kit.Routes(f"ws://localhost:{port or self.port}", f"http://127.0.0.1:{self.port}")
        told = kit.team_file(routes, "c-1", str(programs))
        told = told.replace("bzb_logs=/logs/agent", f"bzb_logs={self.logs}").replace("bzb_ready_s=40", "bzb_ready_s=2")
        told = told.replace("bzb_collected=/logs/agent", f"bzb_collected={collected or self.logs}")
        kit.write(self.home / "kit", told, {name: (f"export NAME={name}\n", "") for name in agents})

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(self.home / "kit" / script), str(self.home / "kit"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    def pids(self, pattern: str) -> list[int]:
        found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made = Team(tmp_path, server.server_address[1])
    yield made
    if (tmp_path / "kit" / "stop.sh").exists():
        made.run("stop.sh")
    server.shutdown()
    server.server_close()


def test_everybody_is_started_with_what_is_his_and_a_log_of_his_own(team: Team) -> None:
    team.make(f"echo I am $NAME; {READY} sleep 1000")
    done = team.run("start.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready orch\nready worker-1\n", "")
    assert (team.logs / "worker-1" / "buzz-acp.log").read_text().startswith("I am worker-1\n")
    assert team.run("alive.sh").stdout == ""


def test_each_agent_has_a_session_of_its_own(team: Team) -> None:
    team.make(f"{READY} sleep 1000")
    team.run("start.sh")
    for name in ("orch", "worker-1"):
        pid = int((team.home / "kit" / "agents" / name / "pid").read_text())
        assert os.getsid(pid) == pid


def test_an_agent_that_ends_at_once_is_named_with_its_last_words(team: Team) -> None:
    team.make(f'if [ $NAME = worker-1 ]; then echo "no such key" >&2; exit 1; fi\n{READY} sleep 1000')
    done = team.run("start.sh")
    assert (done.returncode, done.stdout) == (1, "ready orch\nfailed worker-1 it ended: no such key\n")


def test_programs_of_another_architecture_are_told_as_such(team: Team) -> None:
    """Case 42: an image may be of another machine than the engine, so that only running them tells."""
    team.make(READY, agents=("orch",))
    foreign = 183 if platform.machine() == "x86_64" else 62
    (team.home / "bin" / "buzz-acp").write_bytes(program(machine=foreign, kind=2))
    done = team.run("start.sh")
    assert done.returncode == 1
    assert done.stdout.startswith("failed orch it ended: ")
    assert done.stdout.endswith("/bin/buzz-acp: cannot execute binary file: Exec format error\n")


def test_an_agent_that_never_listens_is_named_in_time(team: Team) -> None:
    team.make("echo connecting; sleep 1000", agents=("orch",))
    done = team.run("start.sh")
    assert done.stdout == "failed orch it has not subscribed within 2 s: connecting\n"


def test_a_relay_that_does_not_answer_from_there_is_named_with_its_address(team: Team) -> None:
    team.make(f"{READY} sleep 1000", port=9)
    done = team.run("start.sh")
    assert (done.returncode, done.stdout) == (1, "unreachable relay at localhost:9\n")


def test_a_relay_that_comes_up_later_is_waited_for(team: Team) -> None:
    """Case 61: it opens only once the agents have begun."""
    port = free_port()
    team.make(f"{READY} sleep 1000", agents=("orch",), port=port)
    opened: list[http.server.HTTPServer] = []

    def open_late() -> None:
        wait_until((team.logs / "orch" / "buzz-acp.log").exists)
        opened.append(http.server.HTTPServer(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler))
        opened[0].serve_forever()

    late = threading.Thread(target=open_late)
    late.start()
    done = team.run("start.sh")
    assert (done.returncode, done.stdout) == (0, "ready orch\n")
    opened[0].shutdown()
    late.join()
    opened[0].server_close()


def test_who_has_died_is_said(team: Team) -> None:
    team.make(f"{READY} sleep 1000")
    team.run("start.sh")
    os.kill(int((team.home / "kit" / "agents" / "worker-1" / "pid").read_text()), 9)
    wait_until(lambda: team.run("alive.sh").stdout != "")
    assert team.run("alive.sh").stdout == "dead worker-1\n"


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def test_a_halted_team_stands_still_with_its_tree_until_it_may_go_on(team: Team, tmp_path: Path) -> None:
    mark = f"halted-{os.getpid()}"
    collected = tmp_path / "collected"
    child = f"exec -a {mark}-child sleep 1000"
    team.make(f"bash -c {shlex.quote(child)} & {READY} sleep 1000", agents=("orch",), collected=collected)
    team.run("start.sh")
    wait_until(lambda: len(team.pids(mark)) == 1)
    everybody = [int((team.home / "kit" / "agents" / "orch" / "pid").read_text()), *team.pids(mark)]
    done = team.run("stop.sh", "halt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [state_of(pid) for pid in everybody] == ["T", "T"]
    assert (collected / "orch" / "buzz-acp.log").read_text() == (team.logs / "orch" / "buzz-acp.log").read_text()
    assert team.run("alive.sh").stdout == ""
    done = team.run("go_on.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "T" not in [state_of(pid) for pid in everybody]
    team.run("stop.sh", "halt")
    assert (team.run("stop.sh").returncode, team.pids(mark)) == (0, [])


def test_a_relay_that_can_no_longer_be_reached_is_said(team: Team) -> None:
    team.make(f"{READY} sleep 1000")
    team.run("start.sh")
    told = team.home / "kit" / "team.env"
    told.write_text(told.read_text().replace(f"bzb_relay_port={team.port}", "bzb_relay_port=9"))
    assert team.run("alive.sh").stdout == "unreachable relay\n"


def test_who_had_died_before_the_end_is_said_at_the_end(team: Team) -> None:
    team.make(f"{READY} sleep 1000")
    team.run("start.sh")
    os.kill(int((team.home / "kit" / "agents" / "worker-1" / "pid").read_text()), 9)
    wait_until(lambda: team.run("alive.sh").stdout != "")
    done = team.run("stop.sh")
    assert (done.returncode, done.stdout) == (0, "dead worker-1\n")


def test_stopping_ends_the_tree_whatever_groups_it_has_and_leaves_what_was_detached(team: Team) -> None:
    mark = f"marked-{os.getpid()}"
    tree = f"exec -a {mark}-child sleep 1000"
    acp = (
        f"(setsid -w bash -c {shlex.quote(tree)}) &\n"
        f"set -m; bash -c 'exec -a {mark}-group sleep 1000' & set +m\n"
        f"setsid -f bash -c 'exec -a {mark}-service sleep 1000'\n"
        f"trap '' TERM; {READY} sleep 1000"
    )
    team.make(acp, agents=("orch",))
    team.run("start.sh")
    wait_until(lambda: len(team.pids(mark)) == 3)
    done = team.run("stop.sh")
    assert (done.returncode, done.stdout) == (0, "")
    (service,) = team.pids(mark)
    os.kill(service, 9)
    assert not (team.home / "kit" / "agents").exists()


def test_stopping_what_never_started_is_no_failure(team: Team) -> None:
    team.make("exit 1")
    assert team.run("stop.sh").returncode == 0


def test_tools_get_the_images_variables_back(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/it's java")
    team.make(f"{READY} sleep 1000", agents=("orch",))
    (team.home / "bin" / "buzz-dev-mcp").write_text('#!/bin/sh\nprintf "%s|%s|%s" "$JAVA_HOME" "$MINE" "$NAME"')
    (team.home / "bin" / "buzz-dev-mcp").chmod(0o755)
    team.run("start.sh")
    cleared = {"PATH": os.environ["PATH"], "MINE": "kept"}
    done = subprocess.run([team.home / "kit" / "mcp.sh"], env=cleared, capture_output=True, text=True, check=True)
    assert done.stdout == "/opt/it's java|kept|"


def test_what_agent_and_harness_say_is_kept_and_passed_on(team: Team) -> None:
    team.make(f"{READY} sleep 1000", agents=("orch",))
    (team.home / "bin" / "buzz-agent").write_text("#!/bin/sh\nsed 's/ask/answer/'")
    (team.home / "bin" / "buzz-agent").chmod(0o755)
    (team.home / "kit" / "frames").mkdir()
    own = {
        "PATH": os.environ["PATH"],
        "BUZZBENCH_TEAM": str(team.home / "kit"),
        "BUZZBENCH_BIN": str(team.home / "bin"),
        "BUZZ_ACP_DISPLAY_NAME": "orch",
    }
    done = subprocess.run(
        [team.home / "kit" / "agent.sh"], input="ask 1\nask 2\n", env=own, capture_output=True, text=True, check=True
    )
    assert done.stdout == "answer 1\nanswer 2\n"
    assert (team.home / "kit" / "frames" / "orch.in.jsonl").read_text() == "ask 1\nask 2\n"
    assert (team.home / "kit" / "frames" / "orch.out.jsonl").read_text() == "answer 1\nanswer 2\n"
