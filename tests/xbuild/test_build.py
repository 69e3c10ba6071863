"""Real builds in a real engine, of a small workspace with Buzz's package names and of the real forwarder."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.errors import BuzzbenchError
from bench.xbuild import artifacts, elf
from bench.xbuild.container import Build
from tests.docker.images import docker
from tests.pipeline import Installation, new_installation, stop, wait_until
from tests.xbuild import rustimage, workspace

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

SOMEONE = 64_124
"""A user that isn't the container's."""


@dataclass(frozen=True)
class Site:
    """An installation, a workspace, and how to build the one in the other."""

    installation: Installation
    buzz: Path
    image: str

    @property
    def state_dir(self) -> Path:
        return self.installation.state_dir

    @property
    def programs(self) -> Path:
        return artifacts.directory(self.state_dir, rustimage.TRIPLE)

    @property
    def arguments(self) -> list[str]:
        return ["xbuild", "--source", str(self.buzz), "--image", self.image, "--arch", rustimage.TRIPLE]

    def build(self, *more: str) -> tuple[int, str]:
        """Exit code and standard error."""
        done = self.installation.inv(*self.arguments, *more)
        assert done.stdout == ""
        return done.returncode, done.stderr

    def found(self) -> artifacts.Artifacts | None:
        return artifacts.find(self.state_dir, rustimage.TRIPLE)


def containers() -> str:
    return docker("ps", "--all", "--quiet", "--filter", "name=buzzbench-xbuild")


@pytest.fixture(scope="module")
def image() -> str:
    return rustimage.image()


@pytest.fixture
def site(tmp_path: Path, image: str) -> Site:
    return Site(new_installation(tmp_path / "home"), workspace.make(tmp_path / "buzz"), image)


def test_all_programs_are_built_static_stamped_and_belong_to_the_caller(site: Site) -> None:
    site.state_dir.mkdir(parents=True, mode=0o700)
    for name in ("linux-target", "cargo-registry"):
        (site.state_dir / name).mkdir()
        os.chown(site.state_dir / name, SOMEONE, SOMEONE)
    code, said = site.build()
    assert code == 0, said
    assert "xbuild: building buzz-acp, buzz-agent, buzz-dev-mcp, relay-forwarder from " in said
    assert "Compiling buzz-acp v0.1.0" in said
    found = site.found()
    assert found
    assert found.stamp.revision == workspace.git(site.buzz, "rev-parse", "HEAD")
    assert found.stamp.changes is None
    assert found.stamp.image_id == docker("image", "inspect", "--format", "{{.Id}}", site.image)
    assert (
        subprocess.run([found.directory / "buzz-acp", "x"], capture_output=True, check=True).stdout
        == b'buzz-acp one ["x"]\n'
    )
    assert (
        b"usage: relay-forwarder"
        in subprocess.run([found.directory / "relay-forwarder"], capture_output=True, check=False).stderr
    )
    owners = {path.stat().st_uid for path in (site.state_dir / "linux-target").rglob("*")}
    assert owners <= {SOMEONE, os.geteuid()}
    assert (site.state_dir / "agent-programs").resolve() == site.programs
    assert (site.programs / "buzz-acp").stat().st_uid == SOMEONE
    assert workspace.git(site.buzz, "status", "--porcelain", "--ignored") == ""
    assert containers() == ""
    assert docker("images", "--quiet", "--filter", "reference=buzzbench-xbuild-*") == ""


def test_only_what_changed_is_built_again(site: Site) -> None:
    assert site.build()[0] == 0
    first = site.found()
    code, said = site.build()
    assert (code, site.found()) == (0, first)
    assert said == f"xbuild: up to date: {workspace.git(site.buzz, 'rev-parse', 'HEAD')[:12]} for {rustimage.TRIPLE}\n"

    away = {"DOCKER_HOST": "unix:///nowhere"}
    assert site.installation.inv(*site.arguments, **away).returncode == 0, "no engine is needed for what is there"

    # Of a time before the first build: cargo alone would take it for built.
    changed = workspace.say(site.buzz, "buzz-agent", "two")
    os.utime(changed, (1_700_000_000, 1_700_000_000))
    code, said = site.build()
    assert code == 0
    assert " with changes " in said
    second = site.found()
    assert first
    assert second
    assert (
        subprocess.run([second.directory / "buzz-agent"], capture_output=True, check=True).stdout
        == b"buzz-agent two []\n"
    )
    assert second.stamp.revision == first.stamp.revision
    assert second.stamp.programs["relay-forwarder"] == first.stamp.programs["relay-forwarder"]

    code, said = site.build("--force")
    assert code == 0
    assert "xbuild: building" in said

    (second.directory / "buzz-dev-mcp").unlink()
    code, said = site.build()
    assert code == 0
    assert site.found()


def test_a_build_that_fails_leaves_nothing_that_could_be_taken_for_good(site: Site) -> None:
    assert site.build()[0] == 0
    workspace.say(site.buzz, "buzz-agent", "two").write_text("fn main() { nonsense }")
    code, said = site.build()
    assert code == 1
    assert "cannot find value `nonsense` in this scope" in said
    assert f"inv: xbuild: the build in {site.image} ended with 101: see the lines above\n" in said
    assert site.found() is None
    assert containers() == ""


def test_a_program_that_is_missing_is_named(site: Site) -> None:
    (site.buzz / "crates" / "buzz-agent" / "src" / "main.rs").rename(
        site.buzz / "crates" / "buzz-agent" / "src" / "lib.rs"
    )
    (site.buzz / ".cargo").mkdir()
    (site.buzz / ".cargo" / "config.toml").write_text(
        f'[target.{rustimage.TRIPLE}]\nrustflags = ["-C", "target-feature=-crt-static"]\n'
    )
    code, said = site.build()
    assert code == 1
    assert [line for line in said.splitlines() if line.startswith("inv: ")] == [
        "inv: xbuild: buzz-agent: the build left none",
    ]
    assert elf.unfit(site.programs / "buzz-acp", "x86_64") is None, "the source's own flags don't count"
    assert site.found() is None


def test_a_source_that_changes_while_it_is_built_is_not_stamped(site: Site) -> None:
    (site.buzz / ".gitignore").write_text("")
    with (site.buzz / "crates" / "buzz-acp" / "build.rs").open("w") as build_script:
        build_script.write('fn main() { while !std::path::Path::new("/source/now").exists() {} }')
    with site.installation.start(*site.arguments) as process:
        wait_until(lambda: bool(containers()) and "build-script-build" in docker("top", containers(), "-o", "pid,args"))
        (site.buzz / "now").touch()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "inv: xbuild: the source changed meanwhile, from " in said
    assert site.found() is None


def test_an_image_that_cannot_be_had_is_said_before_anything_is_lost(site: Site) -> None:
    assert site.build()[0] == 0
    before = site.found()
    done = site.installation.inv(*site.arguments[:3], "--image", "localhost:1/none", "--arch", rustimage.TRIPLE)
    assert done.returncode == 3
    *_, last = done.stderr.splitlines()
    assert last.startswith("inv: xbuild: the image localhost:1/none for linux/amd64 can't be had: ")
    assert last.endswith("; give one that the engine has with --image or BUZZBENCH_XBUILD_IMAGE")
    assert site.found() == before


def test_an_image_of_another_architecture_is_not_taken(site: Site) -> None:
    done = site.installation.inv(*site.arguments[:-1], "arm64")
    assert done.returncode == 3
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"inv: xbuild: the image {site.image} for linux/arm64 can't be had: ")


def test_an_image_with_apk_gets_the_c_library_first(site: Site, tmp_path: Path) -> None:
    (tmp_path / "apk").write_text('#!/bin/sh\n[ "$1" != info ] || exit 1\necho "$@" > /target/apk.args\n')
    (tmp_path / "apk").chmod(0o755)
    (tmp_path / "Dockerfile").write_text(f"FROM {site.image}\nCOPY apk /usr/bin/apk\n")
    name = f"{site.image}-apk"
    docker("build", "--quiet", "--tag", name, "--file", str(tmp_path / "Dockerfile"), str(tmp_path))
    try:
        done = site.installation.inv(*site.arguments[:3], "--image", name, "--arch", rustimage.TRIPLE)
    finally:
        docker("image", "rm", "--force", name)
    assert done.returncode == 0, done.stderr
    said = (site.state_dir / "linux-target" / "apk.args").read_text()
    assert said == "add --no-cache --quiet musl-dev\n"


def test_settings_stand_in_for_options(site: Site) -> None:
    done = site.installation.inv(
        "xbuild",
        BUZZBENCH_BUZZ_SOURCE=str(site.buzz),
        BUZZBENCH_XBUILD_IMAGE=site.image,
        BUZZBENCH_XBUILD_ARCH=rustimage.TRIPLE,
    )
    assert done.returncode == 0, done.stderr
    assert site.found()


def test_of_two_builds_at_once_the_second_takes_what_the_first_made(site: Site) -> None:
    with site.installation.start(*site.arguments) as one, site.installation.start(*site.arguments) as other:
        said = sorted((process.communicate(timeout=90)[1] for process in (one, other)), key=len)
    assert (one.returncode, other.returncode) == (0, 0)
    assert [line[:20] for line in said[0].splitlines()] == ["xbuild: another buil", "xbuild: up to date: "]
    assert "Compiling buzz-acp" in said[1]


@pytest.fixture
def endless(site: Site) -> Iterator[subprocess.Popen[str]]:
    """A build that doesn't end by itself, in its container."""
    build_script = site.buzz / "crates" / "buzz-acp" / "build.rs"
    build_script.write_text("fn main() { std::thread::sleep(std::time::Duration::from_secs(3600)) }")
    with site.installation.start(*site.arguments) as process:
        wait_until(lambda: bool(containers()) and "build-script-build" in docker("top", containers(), "-o", "pid,args"))
        yield process
        process.kill()
    build_script.unlink()


def test_an_interrupted_build_takes_its_container_along(site: Site, endless: subprocess.Popen[str]) -> None:
    assert stop(endless, signal.SIGINT) == 130
    assert containers() == ""
    assert site.found() is None


def test_what_a_killed_build_left_running_is_ended_by_the_next(site: Site, endless: subprocess.Popen[str]) -> None:
    endless.kill()
    endless.wait(timeout=20)
    left = containers()
    assert left
    (site.buzz / "crates" / "buzz-acp" / "build.rs").unlink()
    code, said = site.build()
    assert code == 0, said
    assert left not in docker("ps", "--all", "--quiet")
    (site.buzz / "crates" / "buzz-acp" / "build.rs").touch()


@pytest.fixture
def nowhere(tmp_path: Path) -> Callable[[Path], None]:
    """Starts a program in the empty image."""
    place = artifacts.directory(tmp_path, rustimage.TRIPLE)
    place.mkdir(parents=True)

    def start(program: Path) -> None:
        (place / "buzz-acp").write_bytes(program.read_bytes())
        (place / "buzz-acp").chmod(0o755)
        Build(tmp_path, tmp_path, "0" * 64, "", rustimage.TRIPLE, "amd64", foreign=False).start_nowhere(["buzz-acp"])

    return start


def test_a_program_that_needs_files_does_not_run_in_the_empty_image(nowhere: Callable[[Path], None]) -> None:
    with pytest.raises(BuzzbenchError) as caught:
        nowhere(Path("/bin/sh").resolve())
    assert str(caught.value).startswith("xbuild: buzz-acp does not run in an empty image: ")
    assert "no such file or directory" in str(caught.value)


def test_a_program_that_goes_on_serving_runs(
    nowhere: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.xbuild.container.TRY_S", 2.0)
    source = tmp_path / "serve.rs"
    source.write_text("fn main() { loop { std::thread::park() } }")
    command = ["rustc", "-C", "target-feature=+crt-static", "-o", str(tmp_path / "serve"), str(source)]
    subprocess.run(command, check=True)
    nowhere(tmp_path / "serve")
    assert containers() == ""


def test_a_program_that_crashes_at_once_does_not_pass(nowhere: Callable[[Path], None], tmp_path: Path) -> None:
    source = tmp_path / "crash.rs"
    source.write_text("fn main() { std::process::abort() }")
    command = ["rustc", "-C", "target-feature=+crt-static", "-o", str(tmp_path / "crash"), str(source)]
    subprocess.run(command, check=True)
    with pytest.raises(BuzzbenchError, match=r"buzz-acp does not run in an empty image: ended with 13\d"):
        nowhere(tmp_path / "crash")
