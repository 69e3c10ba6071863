"""The condition that a team manifest describes.

The file's form (SEED.md row R4) is in `bench/manifest/schema.py`, what its fields say together in
`bench/manifest/checks.py`; both need pydantic and are imported only when a manifest is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.condition import Agent, Condition, agent_names
from bench.errors import Problem, raise_problems

if TYPE_CHECKING:
    from bench.manifest.checks import Texts
    from bench.manifest.schema import Manifest, Member, Pinned
    from bench.reading.yamlfile import Document


def load(path: Path, *, alone: bool = False) -> Condition:
    """The condition in a manifest. Raises InvalidInput with every fault, each with its file, line and field.

    `alone` says that one agent plays on its terms, however many its roster has.
    """
    from bench.manifest.checks import check
    from bench.manifest.schema import validate
    from bench.reading import yamlfile

    document = yamlfile.read(path, what="manifest")
    texts: Texts = {}
    manifest, problems = validate(document)
    raise_problems([*problems, *check(document, path, texts, alone=alone)])
    assert manifest
    content = manifest.model_dump(mode="json", exclude_defaults=True)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Condition(
        name=manifest.condition,
        agents=tuple(agent for member in manifest.roster for agent in _expand(member, texts)),
        prices={m.model_revision: manifest.price_of(m).rates() for m in manifest.roster},
        timeout_seconds=manifest.trial_budget.timeout_seconds,
        path=path.resolve(),
        canonical=canonical,
        sha256=hashlib.sha256(canonical.encode()).hexdigest(),
        limits=manifest.trial_budget.limits(),
        overrides=manifest.environment.model_dump(exclude_none=True),
        unenforced=manifest.unenforced,
        notes=tuple(_notes(manifest, document)),
    )


def _notes(manifest: Manifest, document: Document) -> Iterator[Problem]:
    """Models that are priced by their endpoint: as upstream does, but also where only the model was changed."""
    told = set(manifest.prices)
    for number, member in enumerate(manifest.roster):
        if (model := member.model_revision) not in told:
            told.add(model)
            what = f"{model} costs what prices says of its endpoint, {member.endpoint}"
            yield document.problem(
                ("roster", number, "model_revision"), what, f"add prices.{model} if that is another price"
            )


def _expand(member: Member, texts: Texts) -> Iterator[Agent]:
    generation = member.generation

    def text(pinned: Pinned) -> str:
        return texts[pinned.path, pinned.sha256]

    for index, name in enumerate(agent_names(member.id, member.count), start=1):
        yield Agent(
            name=name,
            member=member.id,
            index=index,
            kind=member.kind,
            role=member.role,
            harness=member.harness,
            endpoint=member.endpoint,
            model=member.model_revision,
            prompt=text(member.prompt),
            persona=text(member.persona) if member.persona else None,
            skills=tuple(text(skill) for skill in member.skills),
            max_output_tokens=generation.max_output_tokens,
            context_window_tokens=generation.context_window_tokens,
            thinking_effort=generation.thinking_effort,
            limits=member.budget.limits(),
            concurrency=member.concurrency,
            platform_prompt=member.include_platform_prompt,
            extra=generation.extra,
        )
