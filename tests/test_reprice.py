"""Measured tokens at other prices: receipts stay, unknown stays unknown."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from bench import reprice
from bench.errors import InvalidInput
from bench.manifest import pricesheet
from bench.records import RECEIPTS
from bench.settings import Settings

SHEET = """
dated: 2026-07-01
prices:
  sonnet: {input: 3, cached_input: 0.3, cache_write: 3.75, output: 15}
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def receipt(model: str = "sonnet", output: int | None = 1_000_000, **more: object) -> str:
    tokens = {"input_tokens": 1_000_000, "cache_read_tokens": 0, "cache_write_tokens": 0, "output_tokens": output}
    return json.dumps({"model": model, "outcome": "ok", "cost_usd_micros": 5, **tokens, **more})


def test_every_model_is_costed_anew_and_the_receipts_stay(tmp_path: Path) -> None:
    sheet = pricesheet.load(write(tmp_path / "prices.yaml", SHEET))
    receipts = write(
        tmp_path / RECEIPTS, "\n".join([receipt(), receipt(), receipt("haiku"), receipt(outcome="refused")])
    )
    before = receipts.read_bytes()
    sonnet, haiku = reprice.cost_anew(receipts, sheet, [])
    assert (sonnet.calls, sonnet.booked_usd_micros, sonnet.other_usd_micros) == (2, 10, 36_000_000)
    assert haiku.unpriced
    assert receipts.read_bytes() == before


def test_unknown_tokens_stay_unknown(tmp_path: Path) -> None:
    sheet = pricesheet.load(write(tmp_path / "prices.yaml", SHEET))
    (row,) = reprice.cost_anew(write(tmp_path / RECEIPTS, receipt(output=None)), sheet, [])
    assert (row.unknown_calls, row.other_usd_micros) == (1, 0)


def test_cache_writes_for_an_hour_are_read_from_the_raw_report_and_have_their_own_rate(tmp_path: Path) -> None:
    usage = {"cache_creation": {"ephemeral_5m_input_tokens": 600_000, "ephemeral_1h_input_tokens": 400_000}}
    receipts = write(tmp_path / RECEIPTS, receipt(input_tokens=0, cache_write_tokens=1_000_000, output=0, usage=usage))
    text = SHEET.replace("3.75,", "3.75, cache_write_1h: 7,")
    for number, (given, expected) in enumerate([(SHEET, 2_250_000 + 2_400_000), (text, 2_250_000 + 2_800_000)]):
        sheet = pricesheet.load(write(tmp_path / f"{number}.yaml", given))
        (row,) = reprice.cost_anew(receipts, sheet, [])
        assert row.other_usd_micros == expected


def test_a_call_counts_once_by_its_end(tmp_path: Path) -> None:
    sheet = pricesheet.load(write(tmp_path / "prices.yaml", SHEET))
    began, ended = receipt(output=None, outcome="open", call_id="c"), receipt(call_id="c")
    (row,) = reprice.cost_anew(write(tmp_path / RECEIPTS, f"{began}\n{ended}\n"), sheet, [])
    assert (row.calls, row.unknown_calls, row.other_usd_micros) == (1, 0, 18_000_000)


def test_a_sheet_has_its_day_and_the_hash_that_receipts_name(tmp_path: Path) -> None:
    sheet = pricesheet.load(write(tmp_path / "prices.yaml", SHEET))
    assert sheet.dated == datetime.date(2026, 7, 1)
    assert len(sheet.sha256) == 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prices: {sonnet: {input: 3, output: 15}}", "dated: is missing"),
        ("dated: 2026-07-01\nprices: {}", "prices"),
        ("dated: soon\nprices: {sonnet: {input: 3, output: 15}}", ":1: dated: 'soon' is no date, such as 2026-07-01"),
        (
            "dated: 2026-07-01\nprice: 1\nprices: {s: {input: 3, output: 15}}",
            ":2: price: unknown field; did you mean pri",
        ),
        ("condition: x\ndated: 2026-07-01\nprices: {s: {input: 3, output: 15}}", ":1: condition: unknown field"),
        ("dated: 2026-07-01\nprices: {sonnet: {input: -3, output: 15}}", "prices.sonnet.input"),
        ("dated: 2026-07-01\nprices: {sonnet: {input: 3000000, output: 15}}", "USD per million tokens"),
        (
            "dated: 2026-07-01\nprices: {sonnet: {input: 3, output: 15, cache_write: 3.75, cache_write_1h: 3}}",
            "prices.sonnet.cache_write_1h: 3 is below cache_write 3.75: a write that stays for an hour is never the",
        ),
        ("dated: 2026-07-01\nprices: {sonnet: {input_per_token: 3, output: 15}}", "not per token"),
    ],
)
def test_a_bad_sheet_is_named_with_its_field(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=r"prices\.yaml:") as raised:
        pricesheet.load(write(tmp_path / "prices.yaml", text))
    assert said in str(raised.value)
    assert "did you mean condition" not in str(raised.value)


def test_a_model_that_the_sheet_lacks_is_no_free_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "jobs" / "team"
    job.mkdir(parents=True)
    write(job / RECEIPTS, receipt(model="other"))
    (job / "buzzbench-plan.json").write_text("{}")
    sheet = write(tmp_path / "prices.yaml", SHEET)
    with pytest.raises(InvalidInput, match=r"prices.yaml: has no price for other; `inv prices"):
        reprice.reprice(Settings(tmp_path / "state", tmp_path / "jobs"), "team", str(sheet), as_json=False)
    assert capsys.readouterr().out.splitlines()[-1].endswith("-> unknown")


def test_what_asked_no_model_and_what_was_booked_without_a_cost_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "jobs" / "lb"
    job.mkdir(parents=True)
    plan = {"job": "lb", "condition_sha256": "ab" * 32, "tasks": [], "rehearsal": "good"}
    write(job / "buzzbench-plan.json", json.dumps(plan))
    write(job / RECEIPTS, "\n".join([receipt(), receipt(cost_usd_micros=None)]))
    settings = Settings(state_dir=tmp_path / "state", jobs_dir=tmp_path / "jobs")
    reprice.reprice(settings, "lb", str(write(tmp_path / "prices.yaml", SHEET)), as_json=False)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("lb (rehearsal: no model was asked) at the prices of 2026-07-01")
    assert last == "  all: $0.0000+? -> $36.0000"


def test_a_start_value_comes_in_our_unit() -> None:
    row = reprice.start_value("claude-sonnet-4-6")
    assert row == {
        "input": "3",
        "cached_input": "0.3",
        "cache_write": "3.75",
        "cache_write_1h": "6",
        "output": "15",
        "max_output_tokens": "128000",
    }


def test_an_unknown_model_has_no_start_value() -> None:
    with pytest.raises(InvalidInput, match="has no price for 'claude-sonnet-4-60'"):
        reprice.start_value("claude-sonnet-4-60")
