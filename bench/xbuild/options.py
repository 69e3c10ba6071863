"""What a build was asked for: flags over settings, each with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench import settings as settings_module
from bench.errors import InvalidInput

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Those that can be built for, as triples call them and as Docker does."""


@dataclass(frozen=True)
class Options:
    """What was asked for, flags over settings. Each `*_from` is where a value comes from, for a complaint about it."""

    state_dir: Path
    source: Path | None
    source_from: str
    image: str
    arch: str | None
    arch_from: str

    @classmethod
    def of(cls, source: str, image: str, arch: str) -> Self:
        """Flags as they were typed, empty where they weren't."""
        settings = settings_module.load(
            {"buzz_source": source or None, "xbuild_image": image or None, "xbuild_arch": arch or None}
        )
        return cls(
            state_dir=settings.state_dir,
            source=settings.buzz_source,
            source_from="--source" if source else settings.origins["buzz_source"],
            image=settings.xbuild_image,
            arch=settings.xbuild_arch,
            arch_from="--arch" if arch else settings.origins["xbuild_arch"],
        )


def triple_of(arch: str, where: str) -> str:
    """The target triple for an architecture as Docker names it; one that is given whole stays.

    >>> triple_of("arm64", "--arch")
    'aarch64-unknown-linux-musl'
    """
    name = arch.partition("-")[0].lower()
    found = next((machine for machine, docker in ARCHITECTURES.items() if name in (machine, docker)), None)
    if found is None:
        known = " or ".join(ARCHITECTURES.values())
        raise InvalidInput.of(
            where, f"no agents can be built for {arch!r}", f"give {known}, or a target triple of theirs"
        )
    return arch if "-" in arch else f"{found}-unknown-linux-musl"
