"""Whether a program built for one architecture can run in an image of another: it can't (public case 42)."""

from __future__ import annotations

from bench.docker.engine import inspect
from bench.errors import Problem

MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
"""By what Docker, `uname -m` and Rust's triples call them, the name in a triple."""


def image_machine(image: str) -> str:
    """The image's architecture as a triple names it: x86_64, aarch64. Raises DockerFailed where the engine lacks it."""
    return machine(inspect("image", [image])[0]["Architecture"])


def machine(name: str) -> str:
    """The architecture as a triple names it; one that we build nothing for keeps its own name."""
    return MACHINES.get(name.strip().lower(), name.strip().lower())


def mismatch(image: str, found: str, triple: str) -> Problem | None:
    """The problem with running a program of that target triple in an image of the architecture found, if there is one.

    >>> str(mismatch("task:1", "arm64", "x86_64-unknown-linux-musl"))
    'task:1: it is for aarch64, and the agents were built for x86_64; give --arch arm64 to inv xbuild'
    """
    built = triple.partition("-")[0]
    if machine(found) == built:
        return None
    wanted = next((name for name, known in MACHINES.items() if known == machine(found)), "")
    fix = f"give --arch {wanted} to inv xbuild" if wanted else "no agents can be built for it"
    return Problem(image, f"it is for {machine(found)}, and the agents were built for {built}", fix)
