"""What each task of `tasks.py` calls: settings and state in, one module's function out. Heavy modules load late."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import settings as settings_module
from bench.errors import InvalidInput, MachineLacks, Problem, raise_problems
from bench.settings import STACKS

if TYPE_CHECKING:
    from bench.validate.run import Tries


def keys(*, show: bool) -> None:
    from bench import keys as module

    module.keys(settings_module.load().state_dir, show=show)


def env() -> None:
    from bench import env as module
    from bench.keys import ensure

    settings = settings_module.load()
    module.env(settings, ensure(settings.state_dir))


def check_up(*, stack: str, **_: Any) -> None:
    if stack and stack not in STACKS:
        raise InvalidInput.of("--stack", f"no such stack: {stack!r}", f"give one of {', '.join(STACKS)}")


def up(*, fresh: bool, stack: str) -> None:
    from bench import up as module
    from bench.keys import ensure
    from bench.stack import address

    settings = settings_module.load()
    running = address(settings.state_dir)
    kind = stack or (running.kind if running else "embedded")
    module.up(settings, ensure(settings.state_dir), stack=kind, fresh=fresh)


def schema() -> None:
    from bench import schema as module
    from bench.stack import address

    found = address(settings_module.load().state_dir)
    if found is None:
        raise MachineLacks.of("", "the stack is not up", "run `inv up`")
    module.apply(found)


def check_xbuild(*, manifest: str, source: str, image: str, arch: str, **_: Any) -> None:
    from bench import xbuild as module

    module.check(manifest=manifest, source=source, image=image, arch=arch)


def xbuild(*, manifest: str, source: str, image: str, arch: str, force: bool) -> None:
    from bench import xbuild as module

    module.xbuild(manifest=manifest, source=source, image=image, arch=arch, force=force)


def gui(*, source: str) -> None:
    from bench import gui as module

    module.gui(source)


def check_bench(**arguments: Any) -> None:
    from bench.run.asked import planned

    planned(**arguments)


def plan_bench(name: str, **arguments: Any) -> Mapping[str, Any] | None:
    from bench.run.asked import planned
    from bench.run.command import stage_arguments

    return stage_arguments(name, planned(**arguments), fresh=arguments["fresh"], dry_run=arguments["dry_run"])


def bench(**arguments: Any) -> None:
    from bench.run.asked import planned
    from bench.run.command import bench as run

    code = run(planned(**arguments), dry_run=arguments["dry_run"], as_json=arguments["json"])
    if code:
        sys.exit(code)


def check_validate(*, run: bool, environment: str, n_concurrent: int, **arguments: Any) -> None:
    if run:
        _tries(environment=environment, n_concurrent=n_concurrent, **arguments)
        return
    idle = {"--environment/-e": environment, "--n-concurrent/-n": n_concurrent}
    raise_problems(Problem(option, "only --run plays tasks", "add --run") for option in idle if idle[option])


def plan_validate(name: str, *, run: bool, **_: Any) -> Mapping[str, Any] | None:
    return {} if run else None


def validate(*, run: bool, json: bool, **arguments: Any) -> None:
    if run:
        from bench.validate import run as validate_run

        code = validate_run.run(_tries(**arguments), as_json=json)
    else:
        from bench import validate as module

        path, manifest = _dataset(**arguments)
        code = module.validate(path, manifest=manifest, as_json=json)
    if code:
        sys.exit(code)


def _dataset(*, path: str, manifest: str, **_: Any) -> tuple[Path, Path | None]:
    return Path(path) if path else settings_module.ROOT / "buzz-dataset", Path(manifest) if manifest else None


@cache
def _tries(*, environment: str, n_concurrent: int, **arguments: Any) -> Tries:
    from bench.validate import run as validate_run

    path, manifest = _dataset(**arguments)
    return validate_run.plan(
        path,
        manifest=manifest,
        environment=environment or "sandbox",
        n_concurrent=n_concurrent or 4,
        jobs_dir=settings_module.load().state_dir / "validate",
    )


def check_doctor(*, path: str, manifest: str, endpoint_config: str, **_: Any) -> None:
    from bench.faults import Faults
    from bench.planning import dataset
    from bench.reading import textfile

    faults = Faults()
    if path:
        faults.catch(lambda: dataset.read(Path(path), settings_module.ROOT / "buzz-dataset"))
    for given, what in ((manifest, "manifest"), (endpoint_config, "endpoint file")):
        if given and not Path(given).is_file():
            faults.append(Problem(given, f"no such {what}", textfile.similar(Path(given), what)))
    raise_problems(faults)


def doctor(*, manifest: str, endpoint_config: str, path: str, n_concurrent: int, strict: bool, json: bool) -> None:
    from bench.doctor.check import Context
    from bench.doctor.run import doctor as run
    from bench.planning.plan import DEFAULT_ENDPOINTS, DEFAULT_MANIFEST

    root = settings_module.ROOT
    context = Context(
        settings_module.load(),
        manifest=Path(manifest) if manifest else root / DEFAULT_MANIFEST,
        endpoint_config=Path(endpoint_config) if endpoint_config else root / DEFAULT_ENDPOINTS,
        dataset=Path(path) if path else root / "buzz-dataset",
        n_concurrent=n_concurrent or 4,
    )
    if code := run(context, strict=strict, as_json=json):
        sys.exit(code)


def down() -> None:
    from bench import down as module

    module.down(settings_module.load())


def status(*, json: bool) -> None:
    from bench import status as module

    module.status(settings_module.load(), as_json=json)


def logs(*, service: str, lines: int, follow: bool) -> None:
    from bench import logs as module

    module.logs(settings_module.load(), service, lines=lines, follow=follow)


def report(*, job: list[str], json: bool) -> None:
    from bench import report as module

    module.report(settings_module.load().jobs_dir, job, as_json=json)


def chat(*, job: str, trial: str, json: bool) -> None:
    from bench import chat as module

    module.chat(settings_module.load().jobs_dir, job, trial, as_json=json)


def compare(*, job: list[str], json: bool) -> None:
    from bench import compare as module

    module.compare(settings_module.load().jobs_dir, job, as_json=json)


def check_pack(*, verify: str, **given: Any) -> None:
    if verify and (others := [name for name, value in given.items() if value and name not in ("key", "json")]):
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in others)
        raise_problems([Problem("--verify", f"checks a pack that is there: {listed} has no effect", "leave it out")])
    if given["key"] and not verify:
        raise_problems([Problem("--key", "whose signature it should be is for --verify", "leave it out")])
    if given["key"] and not re.fullmatch(r"[0-9A-Fa-f]{64}", given["key"]):
        raise_problems(
            [Problem("--key", "is no public key: that is 64 hex digits", "take it as `inv pack` printed it")]
        )
    for text in given["model_org"] or ():
        if not all(part.strip() for part in text.partition("=")):
            raise_problems([Problem(f"--model-org {text}", "its form is MODEL=ORG")])


def pack(
    *,
    job: list[str],
    out: str,
    agent_url: str,
    agent_name: str,
    org: str,
    model_org: list[str],
    let_be: list[str],
    anyway: bool,
    verify: str,
    key: str,
    json: bool,
) -> None:
    from bench import pack as module

    settings = settings_module.load()
    if verify:
        module.verify(settings, Path(verify), key, as_json=json)
        return
    pairs = (text.partition("=") for text in model_org)
    said = module.Said(agent_url, agent_name, org, {model.strip(): name.strip() for model, _, name in pairs})
    wish = module.Wish(tuple(job), Path(out).absolute() if out else None, said, tuple(let_be), anyway)
    module.task(settings, wish, as_json=json)


def spend(*, job: str, watch: bool, json: bool) -> None:
    from bench import spend as module

    module.spend(settings_module.load(), job, watch=watch, as_json=json)


def reprice(*, job: str, prices: str, json: bool) -> None:
    from bench import reprice as module

    module.reprice(settings_module.load(), job, prices, as_json=json)


def prices(*, model: str) -> None:
    from bench import reprice as module

    module.prices(model)


def test(*, fast: bool, docker: bool, match: str) -> None:
    from bench import develop

    develop.test(fast=fast, docker=docker, match=match)


def stress(*, match: str) -> None:
    from bench import develop

    develop.stress(match=match)


def check() -> None:
    from bench import develop

    develop.check()


def lock(*, upgrade: bool) -> None:
    from bench import develop

    develop.lock(upgrade=upgrade)


def perf(*, only: str, json: bool) -> None:
    from bench import perf as module

    module.perf(only, as_json=json)
