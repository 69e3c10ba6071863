"""Manifests: what is measured is named exactly, and what is wrong is said all at once."""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from bench.condition import Condition, Limits
from bench.errors import InvalidInput
from bench.manifest import load
from bench.prices import Price, Tier
from bench.settings import ROOT
from tests.planning.kit import Project, project

SHIPPED = sorted((ROOT / "manifests").glob("*.yaml"))


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


def messages(path: Path) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        load(path)
    return str(caught.value).splitlines()


def changed(home: Project, edit: Any) -> Path:
    """The good manifest, edited in place by `edit`."""
    data = json.loads(json.dumps(home.team()))  # Members that share nothing.
    edit(data)
    return home.manifest(data)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_a_shipped_manifest_loads(path: Path) -> None:
    condition = load(path)
    assert condition.orchestrator.prompt
    assert hashlib.sha256(condition.canonical.encode()).hexdigest() == condition.sha256


def test_shipped_conditions_have_names_and_hashes_of_their_own() -> None:
    conditions = [load(path) for path in SHIPPED]
    assert len({c.name for c in conditions}) == len({c.sha256 for c in conditions}) == len(SHIPPED)


def test_the_default_condition_is_the_references() -> None:
    condition = load(ROOT / "manifests/tb-cobol-sonnet-haiku.yaml")
    assert condition.name == "tb-cobol-sonnet46-2haiku45"
    assert [(a.name, a.kind, a.role, a.model, a.harness) for a in condition.agents] == [
        ("orch", "orchestrator", "lead", "claude-sonnet-4-6", "buzz-agent"),
        ("worker-1", "worker", "implementer", "claude-haiku-4-5", "buzz-agent"),
        ("worker-2", "worker", "implementer", "claude-haiku-4-5", "buzz-agent"),
    ]
    assert {(a.max_output_tokens, a.context_window_tokens) for a in condition.agents} == {(4096, 200_000)}
    assert condition.timeout_seconds == 900
    assert condition.prices == {
        "claude-sonnet-4-6": Price(3_000_000, 300_000, 3_750_000, 15_000_000, cache_write_1h=6_000_000),
        "claude-haiku-4-5": Price(1_000_000, 100_000, 1_250_000, 5_000_000, cache_write_1h=2_000_000),
    }


def test_a_member_becomes_agents_with_names_and_indices(home: Project) -> None:
    agents = load(home.manifest(home.team())).agents
    assert [(a.name, a.member, a.index) for a in agents] == [
        ("orch", "orch", 1),
        ("worker-1", "worker", 1),
        ("worker-2", "worker", 2),
    ]


def test_a_team_of_one_is_allowed(home: Project) -> None:
    team = home.team()
    condition = load(home.manifest({**team, "roster": team["roster"][:1]}))
    assert (condition.workers, condition.endpoints) == ((), ("claude-sonnet-4-6",))


def test_form_and_order_do_not_change_the_hash(home: Project) -> None:
    one = load(home.manifest(home.team()))
    data = home.team()
    data["roster"][0] |= {"count": 1, "skills": None, "generation": {}, "budget": None, "concurrency": 1}
    data["prices"]["claude-sonnet-4-6"] = {"output": 15.0, "input": "3", "cached_input": 0.30}
    other = load(home.manifest(dict(reversed(data.items())) | {"metadata": None}))
    assert one.sha256 == other.sha256


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["roster"][1].update(count=3),
        lambda d: d["prices"]["claude-sonnet-4-6"].update(output=16),
        lambda d: d["trial_budget"].update(timeout_seconds=901),
        lambda d: d["roster"][0].update(harness="buzz-agent"),
        lambda d: d.update(metadata={"note": "x"}),
    ],
)
def test_what_is_measured_changes_the_hash(home: Project, edit: Any) -> None:
    assert load(changed(home, edit)).sha256 != load(home.manifest(home.team(), "other")).sha256


def test_the_canonical_json_has_sorted_keys_and_no_spaces(home: Project) -> None:
    canonical = load(home.manifest(home.team())).canonical
    data = json.loads(canonical)
    assert canonical == json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert data["prices"]["claude-sonnet-4-6"]["cached_input"] == 300_000


def test_prices_that_are_not_given_never_understate(home: Project) -> None:
    data = home.team(prices={"claude-sonnet-4-6": {"input": 3, "output": 15}})
    price = load(home.manifest(data)).prices["claude-sonnet-4-6"]
    assert price == Price(
        input=3_000_000, cache_read=3_000_000, cache_write=3_750_000, output=15_000_000, cache_write_1h=6_000_000
    )


def test_cache_writes_for_an_hour_may_have_a_price_and_are_never_the_cheaper_ones(home: Project) -> None:
    row = {"input": 3, "output": 15, "cache_write": 7}
    for given, expected in [({}, 7_000_000), ({"cache_write_1h": 8}, 8_000_000)]:
        data = home.team(prices={"claude-sonnet-4-6": row | given})
        assert load(home.manifest(data)).prices["claude-sonnet-4-6"].cache_write_1h == expected


def test_a_price_may_have_tiers_by_the_prompts_length(home: Project) -> None:
    row = {"input": 3, "output": 15, "tiers": [{"above_tokens": 200_000, "input": 6, "output": 22.5}]}
    price = load(home.manifest(home.team(prices={"claude-sonnet-4-6": row}))).prices["claude-sonnet-4-6"]
    assert price.tiers == (Tier(200_000, 6_000_000, 6_000_000, 7_500_000, 22_500_000, 12_000_000),)


def test_budgets_become_limits(home: Project) -> None:
    data = home.team(trial_budget={"timeout_seconds": 60, "max_cost_usd": 1.5, "max_tokens": 10_000})
    data["roster"][0]["budget"] = {"max_calls": 7}
    condition = load(home.manifest(data))
    assert condition.limits == Limits(usd_micros=1_500_000, tokens=10_000)
    assert condition.orchestrator.limits == Limits(calls=7)


def upstreams(home: Project) -> Condition:
    """A manifest in upstream's form, in upstream's folders."""
    text = "# Solo\n"
    folder = home.root / "upstream"
    (folder / "manifests").mkdir(parents=True)
    (folder / "personas/bench").mkdir(parents=True)
    (folder / "personas/bench/solo.md").write_text(text)
    path = folder / "manifests/tb.yaml"
    path.write_text(f"""
schema_version: "1"
condition: tb-harness-goose
roster:
  - id: solo
    kind: orchestrator
    role: solo
    count: 1
    endpoint: deepseek/deepseek-v4-flash-0731
    model_revision: deepseek/deepseek-v4-flash-20260731
    harness: goose
    include_platform_prompt: false
    prompt:
      path: personas/bench/solo.md
      sha256: {hashlib.sha256(text.encode()).hexdigest()}
    generation:
      thinking_effort: high
      extra:
        goose_system_prompt_mode: set
    budget:
      max_calls: 10
      max_input_tokens: 1000
prices:
  deepseek/deepseek-v4-flash-0731:
    input_per_million_usd: 0.133
    cached_input_per_million_usd: 0.0266
    output_per_million_usd: 0.266
    cache_read_rate: 0.0
trial_budget:
  timeout_seconds: 36000
environment:
  override_cpus: 4
  override_memory_mb: 8192
metadata:
  recovery: {{enabled: true}}
""")
    return load(path)


def test_upstreams_form_loads_unchanged(home: Project) -> None:
    condition = upstreams(home)
    assert condition.orchestrator.prompt == "# Solo\n"
    assert condition.orchestrator.thinking_effort == "high"
    assert condition.prices["deepseek/deepseek-v4-flash-20260731"].cache_read == 26_600
    assert condition.overrides == {"override_cpus": 4, "override_memory_mb": 8192}
    assert condition.unenforced == ("roster[0].budget.max_input_tokens",)


def test_a_model_that_is_priced_by_its_endpoint_is_told_once_with_its_place(home: Project) -> None:
    assert load(home.manifest(home.team())).notes == ()
    path = changed(home, lambda d: [member.update(model_revision="claude-opus-5") for member in d["roster"]])
    (note,) = load(path).notes
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "claude-opus-5" in text)
    assert str(note) == (
        f"{path}:{line}: roster[0].model_revision: claude-opus-5 costs what prices says of its endpoint, "
        "claude-sonnet-4-6; add prices.claude-opus-5 if that is another price"
    )


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(conditon="x"), "conditon: unknown field; did you mean condition"),
        (lambda d: d.pop("condition"), "condition: is missing"),
        (lambda d: d.update(condition="../x"), "condition: '../x' is no condition's name: letters, digits, blanks and"),
        (lambda d: d.update(condition="a\nb"), r"condition: 'a\nb' is no condition's name"),
        (lambda d: d.update(schema_version=1), 'schema_version: 1 is no text; write it in quotes: "1"'),
        (lambda d: d["roster"][0].update(kind="boss"), "roster[0].kind: 'boss' is not one of 'orchestrator', 'worker'"),
        (lambda d: d["roster"][1].update(count="2"), "roster[1].count: '2' is no whole number"),
        (
            lambda d: d["roster"][1].update(count=0),
            "roster[1].count: 0 is not at least 1",
        ),
        (lambda d: d["roster"][1].update(kind="orchestrator", count=1), "worker is an orchestrator beside orch"),
        (lambda d: d["roster"][0].update(kind="worker"), "roster: has no orchestrator"),
        (lambda d: d["roster"][0].update(count=2), "roster[0].count: 2 orchestrators; a team has exactly one"),
        (lambda d: d["roster"][1].update(id="orch"), "orch is already a name of roster[0]; ids must differ"),
        (lambda d: d["roster"][1].update(id="user"), "user is already the user's name; ids must differ"),
        (lambda d: d["roster"][1].update(concurrency=3), "3 at once, but there is a count of 2"),
        (lambda d: d["roster"][0]["prompt"].update(sha256="0" * 64), "has changed: the manifest pins 00000"),
        (
            lambda d: d["roster"][0]["prompt"].update(sha256="abc"),
            "roster[0].prompt.sha256: 'abc' is no SHA-256:",
        ),
        (lambda d: d["roster"][0]["prompt"].update(path="nope.md"), "roster[0].prompt.path: no such file nope.md in"),
        (lambda d: d["roster"][0]["prompt"].update(path="/etc/passwd"), "must be relative to the manifest's folder"),
        (
            lambda d: d.update(prices={}),
            "prices: no price for claude-sonnet-4-6 (orch, worker); add prices.claude-sonnet-4-6",
        ),
        (lambda d: d["prices"]["claude-sonnet-4-6"].pop("output"), "prices.claude-sonnet-4-6.output: is missing"),
        (lambda d: d["prices"]["claude-sonnet-4-6"].update(input=3e-6), "the unit is USD per million tokens, not per"),
        (
            lambda d: d["prices"]["claude-sonnet-4-6"].update(
                tiers=[{"above_tokens": n, "input": 6, "output": 20} for n in (9, 5)]
            ),
            "the tiers' above_tokens are 9, 5; give them rising",
        ),
        (lambda d: d["prices"]["claude-sonnet-4-6"].update(input=3e6), "over 1000: the unit is USD per million tokens"),
        (lambda d: d["prices"]["claude-sonnet-4-6"].update(input=True), "true is no price"),
        (lambda d: d["prices"]["claude-sonnet-4-6"].update(output=-15), "-15 is no price; give USD per million tokens"),
        (
            lambda d: d["prices"]["claude-sonnet-4-6"].update(cache_write=4, cache_write_1h=3),
            "prices.claude-sonnet-4-6.cache_write_1h: 3 is below cache_write 4: a write that stays for an hour is",
        ),
        (
            lambda d: d["prices"]["claude-sonnet-4-6"].update(input_cost_per_token=3e-6),
            "prices.claude-sonnet-4-6.input_cost_per_token: prices are USD per million tokens, not per token; give",
        ),
        (
            lambda d: d["prices"]["claude-sonnet-4-6"].update(cached_input=3.5),
            "prices.claude-sonnet-4-6.cached_input: 3.5 is more than the 3 of input: both are USD per million tokens",
        ),
        (lambda d: d["prices"]["claude-sonnet-4-6"].update(inputt=1), "unknown field; did you mean input"),
        (
            lambda d: d["trial_budget"].update(timeout_seconds=0),
            "trial_budget.timeout_seconds: 0 is not at least 1",
        ),
        (lambda d: d["trial_budget"].update(max_cost_usd=-1), "-1 is no sum of money; give USD, such as 2.50"),
        (
            lambda d: d["roster"][0].update(generation={"max_output_tokens": 9, "context_window_tokens": 9}),
            "roster[0].generation.max_output_tokens: 9 leaves no room for a prompt in context_window_tokens 9",
        ),
        (
            lambda d: d["roster"][0].update(generation={"compact_at_tokens": 9}),
            "roster[0].generation.compact_at_tokens: has no effect with harness: builtin; remove it",
        ),
        (
            lambda d: d["roster"][0].update(include_platform_prompt=False),
            "roster[0].include_platform_prompt: has no effect with harness: builtin; remove it",
        ),
        (lambda d: d["roster"][0].update(persona="lead"), "roster[0].persona: 'lead' is no mapping of fields"),
        (lambda d: d.update(roster=[]), "roster: is empty"),
        (lambda d: d.update(roster="x"), "roster: 'x' is no list"),
        (lambda d: d["roster"][0].update(id="A b"), "roster[0].id: 'A b' is no name: lower-case letters, digits"),
        (lambda d: d["roster"][0].update(role=True), "roster[0].role: true is no text"),
        (
            lambda d: d["roster"][0].update(model_revision=datetime.date(2024, 1, 1)),
            "roster[0].model_revision: 2024-01-01 is no text",
        ),
        (lambda d: d["roster"][0]["prompt"].update(path="y" * 5000), "roster[0].prompt.path: 'yyyy"),
        (lambda d: d["roster"][0].update(harness="buitlin"), "'goose', 'codex'; did you mean builtin"),
        (lambda d: d["trial_budget"].update(timeout_seconds=10**20), "is not at most 2592000"),
        (lambda d: d["trial_budget"].update(max_cost_usd=1e30), "1e+30 USD is over 1,000,000"),
        (
            lambda d: d["trial_budget"].update(max_tokens=10**20),
            "trial_budget.max_tokens: 100000000000000000000",
        ),
        (lambda d: d.update(environment={"override_cpus": 10**9}), "environment.override_cpus: 1000000000 is not at"),
    ],
)
def test_a_fault_is_said_with_its_field_and_line(home: Project, edit: Any, message: str) -> None:
    path = changed(home, edit)
    found = [line for line in messages(path) if message in line]
    assert len(found) == 1
    assert found[0].startswith(f"{path}:")
    assert found[0].removeprefix(f"{path}:").split(":")[0].isdecimal()


def test_all_faults_are_said_at_once(home: Project) -> None:
    def edit(data: dict[str, Any]) -> None:
        data["roster"][1]["kind"] = "orchestrator"
        data["roster"][0]["prompt"]["sha256"] = "0" * 64
        data["colour"] = "green"
        data["prices"] = {}

    assert len(messages(changed(home, edit))) == 4


def test_a_wrong_hash_comes_with_both_hashes_and_the_command_that_sets_it_right(home: Project) -> None:
    path = changed(home, lambda d: d["roster"][0]["prompt"].update(sha256="0" * 64))
    right = hashlib.sha256(b"Do what is asked.\n").hexdigest()
    (line,) = messages(path)
    assert f"the manifest pins {'0' * 64}, the file has {right}" in line
    assert line.endswith(f"if the change is meant, run: sed -i 's/{'0' * 64}/{right}/' {path}")


@pytest.mark.parametrize("far", ["../../own.md", "personas/../../../own.md"])
def test_a_prompt_from_outside_the_manifests_folders_is_refused_though_its_hash_is_right(
    home: Project, far: str
) -> None:
    text = b"from elsewhere"
    (home.root.parent / "own.md").write_bytes(text)
    pinned = {"path": far, "sha256": hashlib.sha256(text).hexdigest()}
    (line,) = messages(changed(home, lambda d: d["roster"][0].update(prompt=pinned)))
    assert f"roster[0].prompt.path: {far} lies outside the manifest's folder and the one that this is in" in line


def test_one_model_has_one_price(home: Project) -> None:
    data = home.team(prices={"a": {"input": 1, "output": 1}, "b": {"input": 2, "output": 2}})
    data["roster"][0]["endpoint"], data["roster"][1]["endpoint"] = "a", "b"
    assert "claude-sonnet-4-6 has two prices, those of a and b" in messages(home.manifest(data))[0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Send it to @critic.", ["critic"]),
        ("Ask @worker-3 or @Worker-1, then the @lead and @user.", ["worker-3"]),
        ("@worker-1, @worker, @orch: an @mention wakes; write to me@example.com, use @types/node and @mark.slow", []),
    ],
)
def test_a_persona_mentions_only_the_roster(home: Project, text: str, named: list[str]) -> None:
    data = home.team()
    data["roster"][0]["prompt"] = home.persona(text, "lint")
    path = home.manifest(data)
    if not named:
        load(path)
        return
    (line,) = messages(path)
    assert f"personas/lint.md, line 1, mentions @{named[0]}, whom the roster lacks: it would reach nobody" in line
    assert "the roster has orch, worker-1, worker-2" in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2", ":2: not valid YAML"),
        ("condition: a\ncondition: b", ":2: condition: given twice, first on line 1"),
        ("- a", ": this manifest is no mapping of fields to values"),
        ("", ": this manifest is empty"),
        ("metadata: &m {again: *m}", ":1: metadata.again: refers to itself"),
        ("a: !!python/object:os.system x", "not valid YAML: could not determine a constructor"),
    ],
)
def test_broken_yaml_is_said_with_its_line(home: Project, text: str, message: str) -> None:
    path = home.root / "broken.yaml"
    path.write_text(text)
    assert any(message in line for line in messages(path))


def test_a_file_that_cannot_be_read_is_named(home: Project) -> None:
    assert messages(home.root / "nope.yaml") == [f"{home.root}/nope.yaml: no such manifest"]
    assert messages(home.root) == [f"{home.root}: is a directory, no manifest"]
    (home.root / "latin.yaml").write_bytes(b"condition: \xff\n")
    assert messages(home.root / "latin.yaml") == [f"{home.root}/latin.yaml:1: this manifest is not UTF-8 text"]
