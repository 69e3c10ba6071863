"""A pack on disk: jobs' files, `metadata.yaml`, and a signed list of them all. The same input gives the same bytes.

OUT/buzzbench-pack.json       what is in it, each file with its SHA-256 and size
OUT/buzzbench-pack.sig.json   the Ed25519 signature of that file's bytes, and the key to check it with
OUT/metadata.yaml  leaderboard-row.yaml
OUT/JOB/…                     a job as Harbor's upload takes it
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bench.errors import BuzzbenchError, InvalidInput
from bench.faults import shown
from bench.pack import signing
from bench.printable import one_line
from bench.reading import textfile
from bench.records import PLAN
from bench.scoring import verdicts

if TYPE_CHECKING:
    from nacl.signing import SigningKey

MANIFEST, SIGNATURE = verdicts.PACK, "buzzbench-pack.sig.json"
SCHEMA = "buzzbench-pack-1"
ALGORITHM = "ed25519"
MOST_BYTES = 256 * textfile.MIB
"""A pack's list names each of its files."""
SHOWN = 20
"""Of the files that aren't as they were packed."""


def write(
    out: Path, files: Mapping[str, Path], texts: Mapping[str, str], facts: Mapping[str, Any], key: SigningKey
) -> tuple[bool, tuple[str, ...] | None]:
    """Make the pack at `out`, in one step. Whether it is new, False where the same is there already; and what changed.

    `files` are copied, `texts` written, each by its name in the pack. A pack that is there already is replaced: then
    the files in which the two differ are given, else None. Raises InvalidInput for anything else in the way, or where
    nothing can be written, and BuzzbenchError where the disk is too small.
    """
    try:
        _refuse_what_is_no_pack(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    except OSError as error:
        raise InvalidInput.of(shown(out), f"can't be written: {error.strerror}", "give another --out") from None
    try:
        return _write(made, out, files, texts, facts, key)
    except OSError as error:
        what = f"the pack can't be written: {error.strerror}"
        raise BuzzbenchError(what, where=shown(out), fix="free some space, or give another --out") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def check_place(out: Path, jobs_dir: Path) -> None:
    """Raises InvalidInput where no pack can be made: told before its files are looked through, which takes a while."""
    fix = "give another --out"
    try:
        if out.is_symlink() and not out.exists():
            raise InvalidInput.of(shown(out), "is a link to what isn't there", fix)
        _refuse_what_is_no_pack(out)
        place = out.resolve()
        parents = place.parents
        among = any((above / name).exists() for above in parents for name in (PLAN, MANIFEST))
        if among or jobs_dir.resolve() in parents:
            what = "lies among the jobs or in a pack, where it would be taken for a part of them"
            raise InvalidInput.of(shown(out), what, fix)
        there = next(above for above in parents if above.exists())
        longest = max(place.relative_to(there).parts, key=lambda part: len(os.fsencode(part)))
        Path(tempfile.mkdtemp(dir=there, prefix=f".{longest}.")).rmdir()
    except OSError as error:
        raise InvalidInput.of(shown(out), f"can't be written: {error.strerror}", fix) from None


def _write(
    made: Path,
    out: Path,
    files: Mapping[str, Path],
    texts: Mapping[str, str],
    facts: Mapping[str, Any],
    key: SigningKey,
) -> tuple[bool, tuple[str, ...] | None]:
    for name, source in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, made / name)
    for name, text in texts.items():
        (made / name).write_text(text, encoding="utf-8")
    listed = {name: _entry(made / name) for name in sorted([*files, *texts])}
    manifest = json.dumps({"schema": SCHEMA, **facts, "files": listed}, indent=1, sort_keys=True) + "\n"
    signed = {
        "algorithm": ALGORITHM,
        "public_key": signing.public(key),
        "signature": key.sign(manifest.encode()).signature.hex(),
    }
    (made / MANIFEST).write_text(manifest, encoding="utf-8")
    (made / SIGNATURE).write_text(json.dumps(signed, indent=1) + "\n", encoding="utf-8")
    made.chmod(0o755)
    changed = tuple(_differing(out, made)) if out.exists() and any(out.iterdir()) else None
    if changed == ():
        return False, None
    _put(made, out)
    return True, changed


def _put(made: Path, out: Path) -> None:
    if out.exists():
        old = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
        try:
            out.rename(old / "old")
            made.rename(out)
        finally:
            if not out.exists():
                (old / "old").rename(out)
            shutil.rmtree(old)
    else:
        made.rename(out)


def _refuse_what_is_no_pack(out: Path) -> None:
    """Raises InvalidInput where something else than a pack, or more than one, would be lost."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    known = _listed(out) if out.is_dir() else None
    strange = None if known is None else next((name for name in _names(out) if name not in known), None)
    if known is None or strange:
        what = (
            f"has {one_line(strange)}, which is no part of the pack there"
            if strange
            else "is there already, and no pack"
        )
        raise InvalidInput.of(shown(out), what, "give another --out")


def _listed(directory: Path) -> set[str] | None:
    """The names that a pack's manifest gives, with its own files; None where there is none."""
    try:
        files = {*json.loads(_read(directory / MANIFEST))["files"]}
    except (InvalidInput, ValueError, KeyError, TypeError, RecursionError):
        return None
    return files | {MANIFEST, SIGNATURE}


def _differing(one: Path, other: Path) -> Iterator[str]:
    """The files that two packs don't have alike, byte for byte, without those that list and sign the others."""
    ours, theirs = ({name: _entry(pack / name) for name in _names(pack)} for pack in (one, other))
    differing = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    own = [name for name in differing if name in (MANIFEST, SIGNATURE)]
    yield from [name for name in differing if name not in own] or own


def _names(directory: Path) -> Iterator[str]:
    """Everything in it that is no directory, and each directory that is empty, by its path from it. Raises OSError."""
    for where, folders, names in os.walk(directory, onerror=_raise):
        links = [name for name in folders if (Path(where) / name).is_symlink()]
        yield from (str((Path(where) / name).relative_to(directory)) for name in (*names, *links))
        if not folders and not names and Path(where) != directory:
            yield f"{Path(where).relative_to(directory)}/"


def _raise(error: OSError) -> None:
    raise error


def _entry(path: Path) -> dict[str, Any]:
    """How the list has a file; empty for what is none. Raises OSError."""
    if path.is_symlink() or not path.is_file():
        return {}
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def verify(directory: Path) -> tuple[dict[str, Any], str]:
    """A pack's facts and the key that it is signed with. Raises BuzzbenchError with each thing that doesn't hold.

    What is packed are names and bytes: modes, owners and times are no part of it, and change as it is sent about.
    """
    manifest, public = _signed(directory)
    files = manifest.get("files")
    if manifest.get("schema") != SCHEMA or not isinstance(files, dict):
        raise BuzzbenchError(f"is of another version, {manifest.get('schema')}", where=shown(directory / MANIFEST))
    try:
        wrong = [*_wrong(directory, files)]
    except OSError as error:
        raise BuzzbenchError(f"can't be looked through: {error.strerror}", where=shown(directory)) from None
    if (more := len(wrong) - SHOWN) > 0:
        wrong[SHOWN:] = [f"and so {'is one more' if more == 1 else f'are {more} more'}"]
    if wrong:
        raise BuzzbenchError("\n".join(wrong))
    return manifest, public


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False  # no path of anything


def _signed(directory: Path) -> tuple[dict[str, Any], str]:
    """The manifest, and the key that has signed it. Raises InvalidInput: it is no pack; BuzzbenchError: a wrong one."""
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey

    if not _is_there(directory / MANIFEST):
        raise InvalidInput.of(shown(directory), f"is no pack: there is no {MANIFEST}")
    if not _is_there(directory / SIGNATURE):
        raise BuzzbenchError(f"is not signed by anybody: there is no {SIGNATURE}", where=shown(directory))
    if link := next((name for name in (MANIFEST, SIGNATURE) if (directory / name).is_symlink()), None):
        raise BuzzbenchError("is a link, and no file of a pack is one", where=shown(directory / link))
    try:
        data, signed = _read(directory / MANIFEST), json.loads(_read(directory / SIGNATURE))
        public, signature = bytes.fromhex(signed["public_key"]), bytes.fromhex(signed["signature"])
        manifest = json.loads(data)
        checked = VerifyKey(public)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BuzzbenchError("its list or its signature can't be read: it is damaged", where=shown(directory)) from None
    try:
        checked.verify(data, signature)
    except (BadSignatureError, ValueError):
        what = f"{MANIFEST} is not what {public.hex()} has signed"
        raise BuzzbenchError(what, where=shown(directory)) from None
    return manifest if isinstance(manifest, dict) else {}, public.hex()


def _read(path: Path) -> bytes:
    return textfile.data(path, what="file of a pack", most_bytes=MOST_BYTES)


def _wrong(directory: Path, files: Mapping[str, Any]) -> Iterator[str]:
    there = {*_names(directory)} - {MANIFEST, SIGNATURE}
    # A directory whose files are missing is one that was packed.
    there -= {f"{above}/" for name in files for above in PurePosixPath(name).parents}
    for name in sorted({*files} | there):
        if what := _fault(directory / name, files.get(name), is_there=name in there):
            yield f"{one_line(shown(directory))}/{one_line(name)}: {what}"


def _fault(path: Path, listed: Any, *, is_there: bool) -> str:
    if not is_there:
        return "is missing"
    if listed is None:
        return "is not on the list"
    if path.is_symlink() or not path.is_file():
        return "is a link, a pipe or a device, and was a file"
    try:
        return "" if _entry(path) == listed else "is not what was packed"
    except OSError as error:
        return f"can't be read: {error.strerror}"
