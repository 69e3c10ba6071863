"""The build in a container (rows X1, X2), and the proof that what came out runs where there is nothing else."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.docker.engine import DockerFailed, docker, inspect, last_line
from bench.docker.marks import STATE, state_label
from bench.errors import BuzzbenchError, MachineLacks
from bench.xbuild import artifacts, forwarder, source

SCRIPT = Path(__file__).with_name("build.sh")
REMOVE_S = 60.0
TRY_S = 10.0
"""How long a program may run in the empty image: those that serve don't end by themselves."""

DOCKER_ITSELF = 125
"""With this or more `docker run` ends where it could make no container, or start no program, or a signal ended that."""
NOT_EXECUTED = re.compile(r"exec (user process caused|/programs/\S+): ")
"""What older engines say when it can't be started; they end with 1."""


@dataclass(frozen=True)
class Build:
    """What is built for which target. `architecture` is the target's in Docker's words, foreign if not the engine's."""

    state_dir: Path
    checkout: Path
    source_digest: str
    image: str
    triple: str
    architecture: str
    foreign: bool

    @property
    def container(self) -> str:
        """The container's name: one for each installation, so that a killed build's can be found again."""
        return f"buzzbench-xbuild-{hashlib.sha256(os.fsencode(self.state_dir)).hexdigest()[:12]}"

    @property
    def cargo_home(self) -> Path:
        return self.state_dir / "cargo-registry"

    def run(self) -> None:
        """Build all programs, cargo's progress on standard error. Raises BuzzbenchError where that fails."""
        target = artifacts.root(self.state_dir)
        for directory in (target, self.cargo_home):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        rust_flags = f"CARGO_TARGET_{self.triple.upper().replace('-', '_')}_RUSTFLAGS"
        variables = {
            "TRIPLE": self.triple,
            "RUSTC_OPTIONS": " ".join(forwarder.OPTIONS),
            "PACKAGES": _options(artifacts.AGENTS),
            "MEMBERS": _options(source.packages(self.checkout, "xbuild")),
            "SOURCE_DIGEST": self.source_digest,
            "CARGO_HOME": "/cargo-home",
            "CARGO_TARGET_DIR": "/target",
            rust_flags: "-C target-feature=+crt-static",
        }
        mounts = {
            f"{self.checkout}:/source": "ro",
            f"{forwarder.SOURCE.parent}:/forwarder": "ro",
            f"{target}:/target": "rw",
            f"{self.cargo_home}:/cargo-home": "rw",
        }
        command = [
            *(word for mount, mode in mounts.items() for word in ("--volume", f"{mount}:{mode}")),
            *(word for name, value in variables.items() for word in ("--env", f"{name}={value}")),
            *("--workdir", "/source", *self._platform, "--entrypoint", "sh", self.image, "-c"),
            SCRIPT.read_text(encoding="utf-8"),
        ]
        code, _ = _run_container(self.container, self.state_dir, command)
        if code:
            raise BuzzbenchError(f"the build in {self.image} ended with {code}: see the lines above", where="xbuild")

    def fetch_image(self) -> str:
        """The image's id, fetched if the engine lacks it, or has another architecture's. Raises MachineLacks."""
        found = inspect("image", [self.image])
        if not found or found[0]["Architecture"] != self.architecture:
            platform = f"linux/{self.architecture}"
            print(f"xbuild: fetching the image {self.image} for {platform}", file=sys.stderr, flush=True)
            done = subprocess.run(
                ["docker", "pull", "--platform", platform, self.image],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            if done.returncode:
                fix = "give one that the engine has with --image or BUZZBENCH_XBUILD_IMAGE"
                what = f"the image {self.image} for {platform} can't be had: {last_line(done.stderr)}"
                raise MachineLacks.of("xbuild", what, fix)
            found = inspect("image", [self.image])
        return str(found[0]["Id"])

    def start_nowhere(self, names: Sequence[str]) -> None:
        """Start each program in an image without any file. Raises BuzzbenchError for one that can't even start."""
        place = artifacts.directory(self.state_dir, self.triple)
        with self._empty_image() as image:
            for name in names:
                command = ["--network", "none", "--read-only", "--volume", f"{place}:/programs:ro", *self._platform]
                command += ["--entrypoint", f"/programs/{name}", image, "--help"]
                code, said = _run_container(self.container, self.state_dir, command, at_most_s=TRY_S)
                if code >= DOCKER_ITSELF or NOT_EXECUTED.search(said):
                    how = last_line(said) or f"ended with {code}"
                    raise BuzzbenchError(f"{name} does not run in an empty image: {how}", where="xbuild")

    @property
    def _platform(self) -> tuple[str, ...]:
        return ("--platform", f"linux/{self.architecture}") if self.foreign else ()

    @contextmanager
    def _empty_image(self) -> Iterator[str]:
        name = f"{self.container}-empty"
        with tempfile.TemporaryDirectory() as home:
            file = Path(home) / "empty.tar"
            tarfile.open(file, "w").close()
            docker("import", *self._platform, str(file), name)
        try:
            yield name
        finally:
            docker("image", "rm", "--force", name)


def remove_container(name: str) -> None:
    """End what a killed build left running. Nothing where there is none."""
    docker("rm", "--force", "--volumes", name, timeout_s=REMOVE_S)


def _options(packages: Iterable[str]) -> str:
    return " ".join(f"-p {name}" for name in packages)


def _run_container(
    name: str, state_dir: Path, command: Sequence[str], *, at_most_s: float | None = None
) -> tuple[int, str]:
    """Run it to its end: its exit code, and nothing. With `at_most_s` it is ended then, with 0, and what it said is
    given back instead of shown.
    """
    label = f"{STATE}={state_label(state_dir)}"
    with (
        tempfile.TemporaryFile() as kept,
        subprocess.Popen(
            ["docker", "run", "--rm", "--name", name, "--label", label, *command],
            stdin=subprocess.DEVNULL,
            stdout=kept if at_most_s else sys.stderr,
            stderr=kept if at_most_s else sys.stderr,
            # Ctrl-C would be passed on to a shell that is process 1 there, and so ignores it.
            start_new_session=True,
        ) as process,
    ):
        try:
            code = process.wait(at_most_s)
        except subprocess.TimeoutExpired:
            return 0, ""
        else:
            kept.seek(0)
            return code, kept.read().decode(errors="replace")
        finally:
            if process.poll() is None:
                try:
                    remove_container(name)
                except DockerFailed:
                    process.send_signal(signal.SIGKILL)
