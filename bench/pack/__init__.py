"""`inv pack`: finished jobs as one signed directory that can be sent in, without logs and without secrets (case 17)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import __version__, harborcommand
from bench.errors import BuzzbenchError, Interrupted, Problem, raise_problems
from bench.faults import shown
from bench.pack import bundle, checks, contents, known, metadata, signing
from bench.pack.metadata import Said as Said
from bench.pack.scan import MOST_BYTES, Finding, Scanner
from bench.printable import one_line
from bench.records import read_job, trial_directories
from bench.records.job import JobRecord, TrialRecord
from bench.records.merge import merged
from bench.report import directories_of
from bench.settings import Settings
from bench.upload import ANYWAY as UPLOAD_ANYWAY

FINDINGS_SHOWN = 20
MOST_DIGESTED = 10 * MOST_BYTES
"""A larger file can't be let be: it may have a hole of any size, and nobody waits until all of it is hashed."""

SAID_BYTES = 30_000_000
"""To look through so much takes so long that it is said."""

SHOWN = 5
"""Of the files in which a pack differs from the one that it replaces."""


@dataclass(frozen=True)
class Wish:
    """What a person asks for. `let_be` are marks of findings that only look like secrets."""

    jobs: tuple[str, ...] = ()
    out: Path | None = None
    said: Said = field(default_factory=Said)
    let_be: tuple[str, ...] = ()
    anyway: bool = False


@dataclass(frozen=True)
class Packed:
    """A pack that is made. `is_new` is False where the same was there already.

    `changed` are the files in which it differs from the pack whose place it took; None where there was none.
    """

    directory: Path
    record: JobRecord
    jobs: tuple[str, ...]
    left_out: tuple[str, ...]
    is_new: bool
    changed: tuple[str, ...] | None
    public_key: str
    warnings: tuple[str, ...] = ()


def pack(settings: Settings, wish: Wish, environ: Mapping[str, str]) -> Packed:
    """Make the pack. Raises InvalidInput: jobs that don't go together or aren't fit, secrets that were found."""
    directories_of_jobs = directories_of(settings.jobs_dir, wish.jobs)
    raise_problems(checks.at_rest(directories_of_jobs))
    jobs = [read_job(directory) for directory in directories_of_jobs]
    raise_problems(checks.same_measured(jobs))
    record = merged(jobs)[0] if len(jobs) > 1 else jobs[0]
    directories = {trial: _directory(trial, jobs) for trial in record.trials}
    verdict = checks.verdict(record, jobs, directories.values())
    record = replace(record, plan=replace(record.plan, leaderboard=verdict))
    told = metadata.of(record.plan, wish.said)
    if not wish.anyway:
        problems = [*checks.of_records(jobs), *checks.of_record(record, jobs), *metadata.problems(told, wish.said)]
        raise_problems([*problems, *(fault for place in directories.values() for fault in checks.of_trial(place))])
    whole = {trial: place for trial, place in directories.items() if checks.is_whole(place)}
    names = _names(jobs)
    out = wish.out or settings.jobs_dir.parent / "packs" / names[jobs[0].directory]
    bundle.check_place(out, settings.jobs_dir)
    files = _files(jobs, names, whole)
    scanner = _scanner(settings, environ, directories_of_jobs, whole.values(), wish.let_be)
    texts = _texts(told, whole)
    found = [*scan(scanner, files), *(one for name, text in texts.items() for one in scanner.scan(text.encode(), name))]
    strange = [] if found else sorted(scanner.strange)
    raise_problems(Problem(f"--let-be {mark}", "no finding has this mark", "leave it out") for mark in strange)
    refuse_secrets(found, "nothing was packed")
    key = signing.ensure(settings.state_dir)
    facts = _facts(record, jobs, names, whole, wish.let_be)
    is_new, changed = bundle.write(out, files, texts, facts, key)
    left_out = tuple(sorted(trial.trial for trial in directories if trial not in whole))
    packed_jobs = tuple(dict.fromkeys(names.values()))
    warnings = (*(doubt for job in jobs for doubt in job.doubts), *_unlooked(environ, directories_of_jobs))
    return Packed(out, record, packed_jobs, left_out, is_new, changed, signing.public(key), warnings)


def refuse_upload(settings: Settings, job: JobRecord, environ: Mapping[str, str], *, anyway: bool = False) -> None:
    """Raises InvalidInput where a job's records contradict each other, unless `anyway`; and where it holds a secret.

    The secret may be in any of the files that an upload may take.
    """
    job_dir = job.directory
    if not anyway:
        doubts = [*checks.of_records([job], UPLOAD_ANYWAY)]
        raise_problems([*doubts, Problem("", "nothing was uploaded")] if doubts else ())
    trials = [path for path in trial_directories(job_dir) if (path / "result.json").exists()]
    paths = [path for place in (job_dir, *trials) for path in contents.uploaded(place)]
    files = {str(path.relative_to(job_dir.parent)): path for path in paths}
    for warning in _unlooked(environ, [job_dir]):
        print(f"warning: {warning}", file=sys.stderr)
    scanner = _scanner(settings, environ, [job_dir], trials, ())
    refuse_secrets([*scan(scanner, files), *_in_links(scanner, trials)], "nothing was uploaded")


def _in_links(scanner: Scanner, trials: Iterable[Path]) -> Iterator[Finding]:
    for trial in trials:
        for link in contents.links(trial):
            name = str(link.relative_to(trial.parent.parent))
            yield from scanner.scan(os.fsencode(link.readlink()), name)
            if link == trial / contents.READ_BY_ITSELF:
                yield Finding(one_line(name), "what is elsewhere on this host: it is a link, which Harbor follows")


def scan(scanner: Scanner, files: Mapping[str, Path]) -> list[Finding]:
    """All that is found in the files, by their names; one that can't be read, or is too large to be, is a finding."""
    found = []
    number_bytes = sum(path.stat().st_size for path in files.values() if path.exists())
    if number_bytes >= SAID_BYTES:
        megabytes = f"{number_bytes // 1_000_000:,} MB"
        print(
            f"looking for secrets in {len(files):,} files, {megabytes}: a few seconds for each 10 MB", file=sys.stderr
        )
    for name, path in files.items():
        try:
            size = path.stat().st_size
            if size > MOST_BYTES:
                digest = _digest(path) if size <= MOST_DIGESTED else ""
                found += scanner.unseen(f"{size // 1_000_000:,} MB", name, digest)
            else:
                found += scanner.scan(path.read_bytes(), name)
        except OSError as error:
            found.append(Finding(one_line(name), f"what can't be read ({error.strerror})"))
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_secrets(found: Sequence[Finding], refused: str) -> None:
    """Raises InvalidInput with each place, what is refused, and the way on for what only looks like a secret."""
    more = len(found) - FINDINGS_SHOWN
    problems = [Problem("", str(finding)) for finding in found[:FINDINGS_SHOWN]]
    if more > 0:
        problems.append(Problem("", f"{more} more places hold one"))
    if found:
        fix = "take the trial out, or the job apart"
        if any(known.OF_A_VARIABLE in finding.what for finding in found):
            fix += "; where a variable holds no secret, `env -u NAME inv …` leaves it out of sight"
        if all(finding.mark for finding in found):
            fix = "where it is a task's own text and no secret, `inv pack --let-be MARK` lets it be"
        problems.append(Problem("", f"{refused}: it would give secrets away", fix))
    raise_problems(problems)


def _scanner(
    settings: Settings,
    environ: Mapping[str, str],
    job_dirs: Sequence[Path],
    trials: Iterable[Path],
    let_be: Sequence[str],
) -> Scanner:
    return Scanner(known.secrets(settings, environ, job_dirs), known.publics(settings, trials), let_be)


def _unlooked(environ: Mapping[str, str], job_dirs: Sequence[Path]) -> Iterator[str]:
    """What nobody could look for."""
    if weak := known.weak(environ, job_dirs):
        why = "what it holds is a word or too short" if len(weak) == 1 else "what they hold are words or too short"
        yield f"not looked for, since {why}: {', '.join(weak)}"


def _directory(trial: TrialRecord, jobs: Sequence[JobRecord]) -> Path:
    """Where the copy is that the merged record took."""
    return next(job.directory / trial.trial for job in jobs if trial in job.trials)


def _names(jobs: Sequence[JobRecord]) -> dict[Path, str]:
    """The directory in the pack of each job's directory: copies of one job share theirs."""
    names: dict[Path, str] = {}
    taken: dict[str, Any] = {}
    for job in jobs:
        number, name, own = 1, job.plan.job, (checks.read(job.directory / "result.json") or {}).get("id")
        while taken.setdefault(name, own) != own:
            number += 1
            name = f"{job.plan.job}-{number}"
        names[job.directory] = name
    return names


def _files(jobs: Sequence[JobRecord], names: Mapping[Path, str], trials: Mapping[TrialRecord, Path]) -> dict[str, Path]:
    """Every file of the pack that is a copy, by its name there."""
    found: dict[str, Path] = {}
    for job in jobs:
        for path in contents.of_job(job.directory):
            found.setdefault(f"{names[job.directory]}/{path.name}", path)
    for place in trials.values():
        for path in contents.of_trial(place):
            found[f"{names[place.parent]}/{path.relative_to(place.parent)}"] = path
    return dict(sorted(found.items()))


def _texts(told: Mapping[str, Any], trials: Mapping[TrialRecord, Path]) -> dict[str, str]:
    import yaml

    ids = [str((checks.read(place / "result.json") or {}).get("id")) for place in trials.values()]
    rewards = [trial.outcome.reward or 0.0 for trial in trials]
    row = metadata.row(told, rewards, ids)
    return {
        name: yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
        for name, value in (("metadata.yaml", told), ("leaderboard-row.yaml", row))
    }


def _facts(
    record: JobRecord,
    jobs: Sequence[JobRecord],
    names: Mapping[Path, str],
    trials: Mapping[TrialRecord, Path],
    let_be: Sequence[str],
) -> dict[str, Any]:
    """What the manifest says beside the files. Nothing of when and where it was packed: that would change its bytes."""
    plan = record.plan
    return {
        "buzzbench": __version__,
        "harbor": sorted({_harbor(job.directory) for job in jobs}),
        "condition": plan.condition,
        "condition_sha256": plan.condition_sha256,
        "stack": plan.stack,
        "environment": plan.environment,
        "leaderboard": plan.leaderboard.to_json(),
        "jobs": sorted({names[job.directory] for job in jobs}),
        "counts": {
            kind: sum(trial.outcome.outcome == kind for trial in trials) for kind in ("passed", "failed", "unscored")
        },
        "doubts": [_placeless(doubt, names) for job in jobs for doubt in job.doubts],
        "let_be": sorted(let_be),
    }


def _placeless(doubt: str, names: Mapping[Path, str]) -> str:
    """A doubt with the jobs' names in the pack in place of where they were."""
    for directory, name in names.items():
        doubt = doubt.replace(str(directory), name)
    return doubt


def _harbor(job_dir: Path) -> str:
    """The version of Harbor that ran a job, as its lock.json has it."""
    harbor = (checks.read(job_dir / "lock.json") or {}).get("harbor")
    return str(harbor.get("version")) if isinstance(harbor, dict) else "unknown"


def commands(packed: Packed) -> Iterator[str]:
    """The lines that a person pastes to send it in (Harbor 0.26)."""
    for job in packed.jobs:
        yield harborcommand.line("upload", shown(packed.directory / job), "--public")
    row = shown(packed.directory / "leaderboard-row.yaml")
    yield harborcommand.line("hub", "leaderboard", "row", "create", "BOARD", "--config", row)


@contextlib.contextmanager
def stopped_in_order() -> Iterator[None]:
    """Has what asks the process to end raise Interrupted, so that nothing half-made is left. For the main thread."""

    def stop(number: int, _frame: object) -> None:
        raise Interrupted(number, "nothing was packed")

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def task(settings: Settings, wish: Wish, *, as_json: bool) -> None:
    """`inv pack`: the result on standard output."""
    with stopped_in_order():
        packed = pack(settings, wish, dict(os.environ))
    for warning in packed.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    verdict = packed.record.plan.leaderboard
    if as_json:
        shown_json = {
            "directory": str(packed.directory),
            "new": packed.is_new,
            "replaced": list(packed.changed or ()),
            "jobs": list(packed.jobs),
            "left_out": list(packed.left_out),
            "public_key": packed.public_key,
            "leaderboard": verdict.to_json(),
            "commands": list(commands(packed)),
        }
        print(json.dumps(shown_json, indent=2))
        return
    for name in packed.left_out:
        print(f"warning: {name} has no whole result, and is left out", file=sys.stderr)
    if packed.changed is not None:
        others = f", and {len(packed.changed) - SHOWN} more" if len(packed.changed) > SHOWN else ""
        listed = ", ".join(map(one_line, packed.changed[:SHOWN])) + others
        print(f"warning: it replaces the pack that was there, and differs in {listed}", file=sys.stderr)
    state = "packed" if packed.is_new else "is packed already, byte for byte"
    print(f"{shown(packed.directory)}: {state}, signed by {packed.public_key}")
    print(f"leaderboard: {verdict}")
    *uploads, row = commands(packed)
    print("send it in with", *(f"  {line}" for line in uploads), sep="\n")
    print("and a board on the Hub takes it when its owner runs", f"  {row}", sep="\n")


def verify(settings: Settings, directory: Path, expected: str, *, as_json: bool) -> None:
    """`inv pack --verify`: whether a pack is what its signer packed, and who that is. `expected` is whom it should be.

    Raises BuzzbenchError with what isn't as it was packed, and where somebody else than the expected one has signed it.
    """
    facts, public = bundle.verify(directory)
    if expected and expected.lower() != public:
        raise BuzzbenchError(f"it is signed by {public}, not by {expected.lower()}", where=shown(directory))
    seed = signing.seed(settings.state_dir)
    ours = bool(seed) and signing.public(signing.ensure(settings.state_dir)) == public
    number = len(facts["files"])
    if as_json:
        told = {"directory": str(directory), "public_key": public, "ours": ours, "asked_for": bool(expected)}
        print(json.dumps({**told, "files": number}, indent=2))
        return
    whose = "this installation's key" if ours else "a key that is not this installation's"
    asked = ", and the one that was asked for" if expected else ""
    files = f"{number} files are" if number != 1 else "1 file is"
    print(f"{shown(directory)}: {files} as packed, signed by {public}, {whose}{asked}")
    if not expected and not ours:
        pinned = shlex.join(["inv", "pack", "--verify", shown(directory), "--key", "PUBLIC_KEY"])
        print(
            "whose key that is nobody has said: whoever changes a pack can sign it anew with a key of their own; "
            f"`{pinned}` accepts only the key that its maker told you"
        )
