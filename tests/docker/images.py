"""Images made on the spot, where none can be pulled: a small Debian, and stand-ins for what the stack runs.

The Debian has bash, Python, PostgreSQL 17 and Valkey; it is also what task containers run on. Each image is made once
and kept under a name that says what it was made from. Needs root, debootstrap, and uv for the relay's packages.

    eval "$(python -m tests.docker.images)"   # in a shell: the variables that name them, for `inv up --stack compose`
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from bench.develop import _uv as uv
from bench.settings import ROOT

SUITE = "trixie"
PACKAGES = ("ca-certificates", "curl", "postgresql-17", "python3", "valkey-server")
LEFT_OUT = ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache/apt", "var/lib/apt/lists", "proc", "sys")
LEFT_OUT_GLOBS = ("usr/lib/*/libLLVM*", "usr/lib/postgresql/*/lib/bitcode")
RELAY_PACKAGES = ("aiohttp", "buzzkit", "nostr-sdk", "orjson", "psycopg[binary,pool]", "uvloop")
RELAY_CODE = ("*.py", "relay/*.py", "relay/*.sql", "channel/*.py")
STANDINS = Path(__file__).parent / "standins"
VARIABLES = {
    "relay": "BUZZ_IMAGE",
    "postgres": "BUZZBENCH_POSTGRES_IMAGE",
    "redis": "BUZZBENCH_REDIS_IMAGE",
    "minio": "BUZZBENCH_MINIO_IMAGE",
    "mc": "BUZZBENCH_MC_IMAGE",
}
"""The setting that names each service's image."""

TASK_IMAGE = "python:3.13-slim-bookworm"
"""What the tasks of buzz-dataset are made from."""

REPOSITORY = "buzzbench-test"


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


def exists(image: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0


@cache
def base() -> str:
    """The Debian image."""
    name = f"{REPOSITORY}/base:{_digest([SUITE, *PACKAGES, *LEFT_OUT, *LEFT_OUT_GLOBS])}"
    if not exists(name):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
            root = Path(home) / "root"
            include = f"--include={','.join(PACKAGES)}"
            command = ["debootstrap", "--variant=minbase", include, SUITE, str(root), _mirror()]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            _import(root, name)
    return name


@cache
def of(role: str) -> str:
    """The image of one of the stack's services."""
    from_base = base()
    files = [*sorted(STANDINS.glob("*.*")), STANDINS / "Dockerfile"]
    if role == "relay":
        files += sorted(path for glob in RELAY_CODE for path in (ROOT / "bench").glob(glob))
    contents = [path.read_text(encoding="utf-8") for path in files]
    name = f"{REPOSITORY}/{role}:{_digest([from_base, *RELAY_PACKAGES, *contents])}"
    if not exists(name):
        with tempfile.TemporaryDirectory() as home:
            context = Path(home)
            shutil.copytree(STANDINS, context / "standins")
            (context / "site").mkdir()
            (context / "bench").mkdir()
            if role == "relay":
                _relay_packages(context / "site")
                shutil.copytree(
                    ROOT / "bench", context / "bench", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
                )
            docker("build", "--quiet", "--build-arg", f"BASE={from_base}", "--target", role, "--tag", name,
                   "--file", str(STANDINS / "Dockerfile"), str(context))  # fmt: skip
    return name


def _relay_packages(target: Path) -> None:
    """What our relay needs, in the versions that are installed here, for the image's Python."""
    constraints = target.parent / "constraints.txt"
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in found.items()), encoding="utf-8")
    command = [str(uv()), "pip", "install", "--quiet", "--target", str(target), "--python-version", "3.13"]
    command += ["--only-binary", ":all:", "--constraints", str(constraints), *RELAY_PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _import(root: Path, name: str) -> None:
    globs = [path.relative_to(root) for glob in LEFT_OUT_GLOBS for path in root.glob(glob)]
    excluded = [f"--exclude=./{path}" for path in (*LEFT_OUT, *globs)]
    with subprocess.Popen(["tar", "-C", str(root), *excluded, "-c", "."], stdout=subprocess.PIPE) as tar:
        done = subprocess.run(["docker", "import", "-", name], stdin=tar.stdout, capture_output=True, check=False)
    assert tar.returncode == 0
    assert done.returncode == 0, done.stderr


def _mirror() -> str:
    """Debian's mirror that this machine uses."""
    shown = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    )
    return next(line for line in shown.stdout.splitlines() if "-security" not in line)


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def main() -> None:
    """Make all of them, and print the lines that a shell takes."""
    for role, variable in VARIABLES.items():
        print(f"export {variable}={of(role)}")
    if not exists(TASK_IMAGE):
        docker("tag", base(), TASK_IMAGE)


if __name__ == "__main__":
    main()
