"""What is written for people about the fields of their files: generated where it can be, and every example loads."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, Field

from bench import endpoints, fieldtables, manifest, useranswers
from bench.errors import InvalidInput
from bench.gateway.script import PLACEHOLDERS, Known, load_script
from bench.harness.toolspecs import ALL, DONE
from bench.manifest import pricesheet
from bench.planning.plan import DEFAULT_ENDPOINTS
from bench.scoring import judgement
from bench.settings import ROOT, Settings

MANIFESTS = ROOT / "manifests"
SCHEMA = json.loads((MANIFESTS / "manifest.schema.json").read_text(encoding="utf-8"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def examples(readme: Path) -> list[tuple[str, str]]:
    """The blocks of code in a text that have a language, in their order: (language, content)."""
    return [(found[1], found[2]) for found in FENCE.finditer(readme.read_text(encoding="utf-8"))]


def in_folder(text: str, tmp_path: Path) -> Path:
    """A manifest's text as a file, with the shipped personas beside it."""
    shutil.copytree(MANIFESTS / "personas", tmp_path / "personas")
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def faults(text: str) -> list[str]:
    """What an editor underlines, by place."""
    found = jsonschema.Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(text))
    return [f"{error.json_path}: {error.message}" for error in found]


def test_the_manifests_example_loads_and_its_team_is_whole(tmp_path: Path) -> None:
    (language, text), (_, servers), (_, sheet) = examples(MANIFESTS / "README.md")
    condition = manifest.load(in_folder(text, tmp_path))
    assert language == "yaml"
    assert [agent.name for agent in condition.agents] == ["orch", "worker-1", "worker-2"]
    assert not condition.unenforced
    (tmp_path / "servers.json").write_text(servers, encoding="utf-8")
    assert set(condition.endpoints) < set(endpoints.load(tmp_path / "servers.json"))
    (tmp_path / "sheet.yaml").write_text(sheet, encoding="utf-8")
    assert pricesheet.load(tmp_path / "sheet.yaml").prices.keys() < condition.prices.keys()


def test_the_manifests_example_has_every_field_but_upstreams() -> None:
    text = examples(MANIFESTS / "README.md")[0][1]
    for form in (SCHEMA, *SCHEMA["$defs"].values()):
        for name, field in form.get("properties", {}).items():
            upstreams = field["description"].startswith("Upstream's")
            assert upstreams or re.search(rf"\b{name}\b", text), f"{name} is not in the example"


def test_the_datasets_examples_load(tmp_path: Path) -> None:
    # The lines to paste are played by tests/dataset/test_first_task.py.
    blocks = [block for block in examples(ROOT / "buzz-dataset/README.md") if block[0] != "sh"]
    (_, answers), (_, script), (language, judge) = blocks
    (tmp_path / "user.yaml").write_text(answers, encoding="utf-8")
    assert useranswers.load(tmp_path)[0].fits("Which quay is it?")
    known = Known({"user", "orch", "worker-1", "worker-2"}, {tool.name for tool in (*ALL, DONE)})
    assert set(load_script(script, "README.md", known).root) == {"orch", "worker"}
    told = {"author": "orch", "mentions": ["user"], "text": "It is berth 9."}
    evidence = {"user": {"name": "user"}, "messages": [told]}
    assert language == "python"
    assert judgement.checks(judge.encode(), "judge.py", evidence) == {"the user is told the berth": True}
    assert judgement.checks(judge.encode(), "judge.py", evidence | {"messages": []}) == {
        "the user is told the berth": False
    }


@pytest.mark.parametrize("placeholder", [name for name in PLACEHOLDERS if "<" not in name])
def test_every_placeholder_of_scripts_is_told(placeholder: str) -> None:
    assert f"`{{{{{placeholder}}}}}`" in (ROOT / "buzz-dataset/README.md").read_text(encoding="utf-8")


def test_the_default_endpoint_file_is_the_one_that_the_readme_names() -> None:
    assert f"`{DEFAULT_ENDPOINTS.removeprefix('manifests/')}`" in (MANIFESTS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_editor_finds_the_schema_of_a_shipped_manifest_and_nothing_wrong_with_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert named
    assert (path.parent / named[1]).samefile(MANIFESTS / "manifest.schema.json")
    assert faults(text) == []


def test_an_editor_accepts_the_example() -> None:
    assert faults(examples(MANIFESTS / "README.md")[0][1]) == []


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("count: 2", "cuont: 2", "$.roster[1]"),
        ("kind: worker", "kind: boss", "$.roster[1].kind"),
        ("count: 2", "count: 0", "$.roster[1].count"),
        ('schema_version: "1"', "schema_version: 1", "$.schema_version"),
        ("timeout_seconds: 300", "timeout_seconds: soon", "$.trial_budget.timeout_seconds"),
        ("timeout_seconds: 300", "max_cost_usd: 0", "$.trial_budget"),
        ("output: 0", "output: 1001", "$.prices.scripted.output"),
    ],
)
def test_an_editor_underlines_what_would_be_refused(old: str, new: str, place: str, tmp_path: Path) -> None:
    text = (MANIFESTS / "rehearsal.yaml").read_text(encoding="utf-8")
    assert old in text
    changed = text.replace(old, new, 1)
    assert place in {fault.partition(":")[0] for fault in faults(changed)}
    with pytest.raises(InvalidInput, match=re.escape(place.rpartition(".")[2].partition("[")[0])):
        manifest.load(in_folder(changed, tmp_path))


def test_bounds_forms_and_defaults_are_in_a_table() -> None:
    class Part(BaseModel):
        size: int = Field(3, ge=1, le=1000, description="How large.")
        kind: str = Field(pattern=r"^[0-9a-f]{64}$", description="Which | one.")

    rows = fieldtables.table(Part).splitlines()[2:]
    assert rows == [
        "| `size` | whole number, 1 to 1,000 | `3` | How large. |",
        r"| `kind` | SHA-256: 64 hex digits, in lower case | needed | Which \| one. |",
    ]


def test_every_setting_is_in_its_table_with_its_variable_and_default() -> None:
    rows = fieldtables.table(Settings).splitlines()[2:]
    assert len(rows) == len(fields(Settings)) - 1, "but for origins"
    assert rows[0].startswith("| `state_dir` | `BUZZBENCH_STATE_DIR` | `.benchmark` | ")
    assert any(row.startswith("| `buzz_image` | `BUZZ_IMAGE` | `ghcr.io/block/buzz:main` | ") for row in rows)


def test_a_field_that_nobody_has_described_is_no_table() -> None:
    class Part(BaseModel):
        size: int = 3

    with pytest.raises(AssertionError, match=r"Part\.size has no description"):
        fieldtables.table(Part)


def test_a_table_takes_the_place_of_the_one_before_and_of_nothing_else() -> None:
    before = "Text.\n<!-- fields: bench.endpoints:FIELDS -->\n| old |\n| --- |\n\n| not | ours |\n"
    after = fieldtables.generated(before)
    table = fieldtables.table(endpoints.FIELDS)
    assert after == f"Text.\n<!-- fields: bench.endpoints:FIELDS -->\n{table}\n| not | ours |\n"
    assert fieldtables.generated(after) == after
