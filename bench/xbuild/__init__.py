"""`inv xbuild`: the Linux programs that a condition's real agents need (rows X1 to X4), built in a container.

They are static, so that they run in any image of their architecture. What is there and was built from the same source,
forwarder, image and target is not built again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench import settings
from bench.errors import BuzzbenchError, MachineLacks, Problem, raise_problems
from bench.faults import Faults
from bench.files import make_private_directory
from bench.places import BUILT_PROGRAMS
from bench.settings import ROOT
from bench.xbuild.options import ARCHITECTURES, Options, triple_of

if TYPE_CHECKING:
    from bench.condition import Condition
    from bench.xbuild.artifacts import Artifacts
    from bench.xbuild.source import Source

DEFAULT_MANIFEST = ROOT / "manifests" / "tb-cobol-sonnet-haiku.yaml"


def check(*, manifest: str = "", source: str = "", image: str = "", arch: str = "") -> None:
    """Raise InvalidInput for a manifest, a source or an architecture that won't do."""
    from bench.xbuild.artifacts import AGENTS
    from bench.xbuild.source import require

    options = Options.of(source, image, arch)
    faults = Faults()
    faults.catch(lambda: _condition(manifest))
    if buzz := options.source:
        faults.catch(lambda: require(buzz, options.source_from, AGENTS))
    if named := options.arch:
        faults.catch(lambda: triple_of(named, options.arch_from))
    raise_problems(faults)


def xbuild(
    *, manifest: str = "", source: str = "", image: str = "", arch: str = "", force: bool = False
) -> Artifacts | None:
    """The programs for the manifest's agents, built if they have to be; None if it has no real agents, or if a
    person named a directory that holds them.

    Raises MachineLacks without an engine, an image or the source, BuzzbenchError where what is built won't do.
    """
    condition = _condition(manifest)
    if not needed(condition):
        _say(f"the condition {condition.name} has no real agents, nothing to build")
        return None
    if (given := settings.load().agent_programs) is not None:
        from bench.harness.buzz import programs

        programs.load(given, forwarder=False)
        _say(f"the agents' programs are those in {given}, nothing to build")
        return None
    options = Options.of(source, image, arch)
    state_dir = make_private_directory(options.state_dir)
    with _alone(state_dir):
        built = _build(options, _source(options), _target(options), force=force)
        _point(state_dir / BUILT_PROGRAMS, built.directory)
        return built


def problems(environ: Mapping[str, str], *, has_engine: bool, forwarder: bool) -> Iterator[Problem]:
    """What stands in the way of the programs of real agents: a named directory without them, no engine to build them.

    `has_engine` False says that somebody has told already that there is none. `forwarder`: whether it is needed, too.
    """
    from bench.docker.engine import absence
    from bench.harness.buzz import programs
    from bench.xbuild import artifacts

    loaded = settings.load(environ=environ)
    if loaded.agent_programs is not None:
        try:
            programs.load(loaded.agent_programs, forwarder=forwarder)
        except MachineLacks as error:
            yield from error.problems
        return
    arch = loaded.xbuild_arch
    if arch and artifacts.find(loaded.state_dir, triple_of(arch, loaded.origins["xbuild_arch"])):
        return
    if has_engine and (found := absence("xbuild", environ, instead="programs that BUZZBENCH_AGENT_PROGRAMS names")):
        yield found


def _point(link: Path, directory: Path) -> None:
    """Have the link lead to the directory, at no moment to nowhere."""
    new = link.with_name(f"{link.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(directory)
    new.replace(link)


def needed(condition: Condition) -> bool:
    """Whether any member runs as real processes in the task's environment."""
    return set(condition.harnesses) != {"builtin"}


def _condition(manifest: str) -> Condition:
    from bench.manifest import load

    return load(Path(manifest) if manifest else DEFAULT_MANIFEST)


def _source(options: Options) -> Source:
    from bench.xbuild.source import checkout, public

    return checkout(options.source) if options.source else public()


def _target(options: Options) -> str:
    from bench.docker.engine import engine

    if options.arch:
        return triple_of(options.arch, options.arch_from)
    _require_engine()
    return triple_of(engine().architecture, "the Docker engine")


def _require_engine() -> None:
    from bench.docker.engine import absence

    raise_problems(filter(None, [absence("xbuild")]))


def _build(options: Options, source: Source, triple: str, *, force: bool) -> Artifacts:
    from bench.docker.engine import engine
    from bench.xbuild import artifacts
    from bench.xbuild.container import Build, remove_container
    from bench.xbuild.source import fetch

    key = _key(source, options.image, triple)
    found = artifacts.find(options.state_dir, triple)
    if found and found.stamp.key == key and not force:
        _say(f"up to date: {source.name} for {triple}")
        return found
    _require_engine()
    began = time.monotonic()
    machine = triple.partition("-")[0]
    architecture = ARCHITECTURES[machine]
    foreign = architecture != engine().architecture
    directory = source.directory or fetch(options.state_dir / "buzz-source")
    build = Build(options.state_dir, directory, source.digest, options.image, triple, architecture, foreign)
    remove_container(build.container)
    image_id = build.fetch_image()
    place = artifacts.directory(options.state_dir, triple)
    # What is left of an earlier build must be taken for nothing, whatever happens now.
    for name in (artifacts.STAMP, *artifacts.NAMES):
        (place / name).unlink(missing_ok=True)
    _say(f"building {', '.join(artifacts.NAMES)} from {source.name} for {triple} in {options.image}")
    build.run()
    if source.directory and (now := _source(options)) != source:
        raise BuzzbenchError(f"the source changed meanwhile, from {source.name} to {now.name}", where="xbuild")
    _verify(place, machine)
    build.start_nowhere(artifacts.NAMES)
    stamp = artifacts.Stamp(
        key=key,
        revision=source.revision,
        changes=source.changes,
        image=options.image,
        image_id=image_id,
        triple=triple,
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        programs={name: artifacts.Program.of(place / name) for name in artifacts.NAMES},
    )
    total_mb = sum(program.size_bytes for program in stamp.programs.values()) / 1e6
    _say(f"built in {time.monotonic() - began:.0f} s, {total_mb:.1f} MB, all static: {place}")
    return artifacts.write(place, stamp)


def _verify(place: Path, machine: str) -> None:
    """Raise BuzzbenchError naming every program that is missing or won't run in any image."""
    from bench.xbuild import elf
    from bench.xbuild.artifacts import NAMES

    problems = []
    for name in NAMES:
        path = place / name
        reason = elf.unfit(path, machine) if path.is_file() else "the build left none"
        if reason:
            problems.append(str(Problem(f"xbuild: {name}", reason)))
    if problems:
        raise BuzzbenchError("\n".join(problems))


def _key(source: Source, image: str, triple: str) -> str:
    """Names the content of all that goes in."""
    from bench.xbuild import forwarder
    from bench.xbuild.container import SCRIPT

    ours = [*forwarder.sources(), SCRIPT.read_text(encoding="utf-8")]
    return hashlib.sha256(json.dumps([source.digest, *ours, forwarder.OPTIONS, image, triple]).encode()).hexdigest()


@contextmanager
def _alone(state_dir: Path) -> Iterator[None]:
    """One build of an installation at a time; the others wait, and then find what it built."""
    descriptor = os.open(state_dir / "xbuild.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another build is under way, waiting for its end")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _say(text: str) -> None:
    print(f"xbuild: {text}", file=sys.stderr, flush=True)
