"""What the fields of a manifest say together, told even where some of them are wrong alone.

So it works on the file's plain data and skips what hasn't the form that `bench/manifest/schema.py` asks for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.condition import agent_names
from bench.errors import InvalidInput, Problem
from bench.faults import shown
from bench.manifest import limits as manifest_limits
from bench.manifest.mentions import unknown_mentions
from bench.manifest.schema import MOST_AGENTS, Pinned
from bench.reading import textfile, wording, yamlfile

USER = "user"
"""The name of the person whose task it is, in the channel."""

type Texts = dict[tuple[str, str], str]
"""The texts of the pinned files, by (path, sha256) as the manifest gives them."""


def check(document: yamlfile.Document, path: Path, texts: Texts, *, alone: bool = False) -> Iterator[Problem]:
    """The problems between fields; reads the pinned files, and adds their texts to `texts`. `alone` is `load`'s."""
    listed = document.data.get("roster")
    roster = [(n, m) for n, m in enumerate(listed) if isinstance(m, dict)] if isinstance(listed, list) else []
    yield from _check_names(document, roster)
    yield from _check_orchestrator(document, roster)
    yield from _check_prices(document, roster)
    yield from manifest_limits.check(document, roster, alone=alone)
    for number, member in roster:
        yield from _check_member(document, ("roster", number), member)
    agents = [name for _, member in roster for name in agent_names(str(member.get("id")), _count(member))]
    known = {USER, *agents, *(str(member.get(key)) for _, member in roster for key in ("id", "role"))}
    for number, member in roster:
        for field, pinned in _pinned(member, ("roster", number)):
            text, problem = _read_pinned(document, path, field, pinned)
            if problem:
                yield problem
            if text is None:
                continue
            texts[pinned["path"], pinned["sha256"]] = text
            for mention, line in unknown_mentions(text, known).items():
                yield document.problem(
                    (*field, "path"),
                    f"{pinned['path']}, line {line}, mentions @{mention}, whom the roster lacks: it would reach nobody",
                    f"the roster has {', '.join(agents)}",
                )


def _count(member: Mapping[str, Any]) -> int:
    count = member.get("count")
    return count if type(count) is int and 0 < count <= MOST_AGENTS else 1


def _check_names(document: yamlfile.Document, roster: list[tuple[int, Any]]) -> Iterator[Problem]:
    """Scripts and mentions take a member's id or an agent's name, so no two of all these may be the same."""
    taken = {USER: "the user's name"}
    for number, member in roster:
        member_id = str(member.get("id"))
        names = {member_id, *agent_names(member_id, _count(member))}
        for name in sorted(names & taken.keys()):
            yield document.problem(("roster", number, "id"), f"{name} is already {taken[name]}; ids must differ")
        taken |= dict.fromkeys(names, f"a name of roster[{number}]")


def _check_member(document: yamlfile.Document, at: yamlfile.Field, member: Mapping[str, Any]) -> Iterator[Problem]:
    concurrency, count = member.get("concurrency"), _count(member)
    if type(concurrency) is int and concurrency > count:
        yield document.problem((*at, "concurrency"), f"{concurrency} at once, but there is a count of {count}")
    generation = member.get("generation")
    generation = generation if isinstance(generation, dict) else {}
    if member.get("harness") != "builtin":
        return
    idle = [(*at, "generation", name) for name in ("compact_at_percent", "compact_at_tokens", "extra")]
    for field in idle:
        if generation.get(str(field[-1])):
            yield document.problem(field, "has no effect with harness: builtin", "remove it")
    if member.get("include_platform_prompt") is not None:
        yield document.problem((*at, "include_platform_prompt"), "has no effect with harness: builtin", "remove it")


def _check_orchestrator(document: yamlfile.Document, roster: list[tuple[int, Any]]) -> Iterator[Problem]:
    leads = [(n, m) for n, m in roster if m.get("kind") == "orchestrator"]
    if roster and not leads:
        yield document.problem(("roster",), "has no orchestrator; exactly one member has kind: orchestrator")
    for number, member in leads[1:]:
        yield document.problem(
            ("roster", number, "kind"),
            f"{member.get('id')} is an orchestrator beside {leads[0][1].get('id')}; a team has exactly one",
        )
    for number, member in leads[:1]:
        if type(member.get("count")) is int and member["count"] > 1:
            yield document.problem(
                ("roster", number, "count"),
                f"{member['count']} orchestrators; a team has exactly one",
            )


def _check_prices(document: yamlfile.Document, roster: list[tuple[int, Any]]) -> Iterator[Problem]:
    prices = document.data.get("prices")
    if not isinstance(prices, dict):
        return
    for name, row in prices.items():
        if isinstance(row, dict):
            yield from _check_row(document, str(name), row)
    used: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    for number, member in roster:
        model, endpoint = member.get("model_revision"), member.get("endpoint")
        if not isinstance(model, str) or not isinstance(endpoint, str):
            continue
        if model not in prices and endpoint not in prices:
            missing.setdefault(model, []).append(str(member.get("id")))
            continue
        key = model if model in prices else endpoint
        if prices[used.setdefault(model, key)] != prices[key]:
            yield document.problem(
                ("roster", number, "endpoint"),
                f"{model} has two prices, those of {used[model]} and {key}; give one as prices.{model}",
            )
    for model, ids in missing.items():
        yield document.problem(("prices",), f"no price for {model} ({', '.join(ids)})", f"add prices.{model}")


def _check_row(document: yamlfile.Document, name: str, row: Mapping[str, Any]) -> Iterator[Problem]:
    """A cached token that costs more than a fresh one: two prices that changed places, or one of another unit."""
    fresh, cached = (row.get(field, row.get(f"{field}_per_million_usd")) for field in ("input", "cached_input"))
    if type(fresh) in (int, float) and type(cached) in (int, float) and cached > fresh:
        field = "cached_input" if "cached_input" in row else "cached_input_per_million_usd"
        what = f"{cached:g} is more than the {fresh:g} of input: both are USD per million tokens"
        yield document.problem(("prices", name, field), what)


def _pinned(member: Mapping[str, Any], at: yamlfile.Field) -> Iterator[tuple[yamlfile.Field, dict[str, str]]]:
    """The pinned files of a roster member that have the right form."""
    fields: list[tuple[yamlfile.Field, Any]] = [
        (("prompt",), member.get("prompt")),
        (("persona",), member.get("persona")),
    ]
    skills = member.get("skills")
    fields += [(("skills", n), skill) for n, skill in enumerate(skills if isinstance(skills, list) else [])]
    for field, value in fields:
        try:
            yield (*at, *field), Pinned.model_validate(value).model_dump()
        except ValidationError:
            continue  # Told already, as a fault of the field's form.


def _read_pinned(
    document: yamlfile.Document, manifest: Path, field: yamlfile.Field, pinned: Mapping[str, str]
) -> tuple[str | None, Problem | None]:
    """The file's text, or what is wrong with it.

    Upstream keeps `personas/` beside `manifests/`, we keep it inside: both are looked at.
    """
    name = pinned["path"]
    folder = manifest.resolve().parent
    if Path(name).is_absolute():
        return None, document.problem((*field, "path"), f"{name} must be relative to the manifest's folder")
    if not Path(os.path.normpath(folder / name)).is_relative_to(folder.parent):
        # A condition travels with its folder, and what lies elsewhere is nobody's prompt.
        what = f"{name} lies outside the manifest's folder and the one that this is in"
        return None, document.problem((*field, "path"), what, f"copy it below {shown(folder)}")
    places = [folder / name, folder.parent / name]
    try:
        file = next((place for place in places if place.is_file()), None)
    except OSError as error:
        return None, document.problem((*field, "path"), f"{wording.shown(name)}: {error.strerror}")
    if file is None:
        return None, document.problem((*field, "path"), f"no such file {name} in {folder}")
    try:
        content = textfile.data(file, what="prompt", where=name)
        text = content.decode()
    except InvalidInput as error:
        return None, document.problem((*field, "path"), str(error))
    except UnicodeDecodeError:
        return None, document.problem((*field, "path"), f"{name} is not UTF-8 text")
    found = hashlib.sha256(content).hexdigest()
    if found == pinned["sha256"]:
        return text, None
    return text, document.problem(
        (*field, "sha256"),
        f"{name} has changed: the manifest pins {pinned['sha256']}, the file has {found}",
        f"if the change is meant, run: sed -i 's/{pinned['sha256']}/{found}/' {document.shown}",
    )
