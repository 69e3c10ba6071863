"""What a job cost, added up from its receipts and journal: for people, for programs, and while it runs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.errors import InvalidInput
from bench.settings import ROOT, Settings
from bench.spend import spend
from bench.spend.sums import Books, JobSpend
from bench.spend.text import headline, lines, to_json
from bench.stack.jobs import hold

PLAN = {
    "schema": "buzzbench-plan-1",
    "job": "lb-team",
    "rehearsal": None,
    "condition": "team",
    "condition_sha256": "ab" * 32,
    "attempts": 2,
    "tasks": [{"name": "org/alpha", "directory": "/nowhere/alpha"}],
    "budget": {"usd_micros": 1000, "tokens": None, "calls": 10, "timeout_seconds": 900},
    "roster": [
        {
            "name": "orch",
            "member": "orch",
            "role": "lead",
            "limits": {"usd_micros": None, "tokens": 400, "calls": None},
        },
        {"name": "worker-1", "member": "worker", "role": "implementer", "limits": {}},
        {"name": "worker-2", "member": "worker", "role": "implementer", "limits": {}},
    ],
}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    directory = tmp_path / "jobs" / "lb-team"
    directory.mkdir(parents=True)
    (directory / "buzzbench-plan.json").write_text(json.dumps(PLAN))
    return directory


_numbers = iter(range(10_000))


def receipt(trial: str = "alpha__1", agent: str = "orch", cost: int | None = 100, **more: Any) -> dict[str, Any]:
    """One call of 100 tokens."""
    return {
        "call_id": f"call-{next(_numbers)}",
        "trial": trial,
        "agent": agent,
        "member": agent.partition("-")[0],
        "model": "m-large",
        "outcome": "ok",
        "input_tokens": 10,
        "cache_read_tokens": 60,
        "cache_write_tokens": 20,
        "output_tokens": 10,
        "cost_usd_micros": cost,
        "charged_usd_micros": cost,
        "charged_tokens": 100,
    } | more


def unknown(charged: int | None = 500, **more: Any) -> dict[str, Any]:
    """A call that was cut: nobody knows what it used, and its reservation is charged."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    )
    return receipt(cost=None, outcome="unknown", charged_usd_micros=charged, **nothing, **more)


def write(job: Path, *receipts: dict[str, Any] | str) -> None:
    with (job / "buzzbench-receipts.jsonl").open("a") as file:
        for line in receipts:
            file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")


def journal(job: Path, *entries: dict[str, Any]) -> None:
    with (job / "buzzbench-journal.jsonl").open("a") as file:
        for entry in entries:
            file.write(json.dumps({"at": "2026-01-31T10:00:00.000+00:00", **entry}) + "\n")


def begun(trial: str) -> dict[str, Any]:
    return {"entry": "attempt_started", "trial": trial, "task": "org/alpha"}


def ended(trial: str, outcome: str = "passed") -> dict[str, Any]:
    return {"entry": "trial_ended", "trial": trial, "outcome": outcome, "reward": 1.0, "reason": "", "labels": []}


def replaced(trial: str) -> dict[str, Any]:
    return {"entry": "attempt_replaced", "trial": trial, "task": "org/alpha", "reason": "cut off", "archive": "x"}


def read(job: Path) -> JobSpend:
    return Books(job).read()


def test_calls_add_up_by_agent_role_model_and_trial(job: Path) -> None:
    write(
        job,
        receipt(agent="orch"),
        receipt(agent="worker-1", model="m-small", cost=7),
        receipt(agent="worker-2", model="m-small", cost=3),
        receipt("alpha__2", agent="worker-1", model="m-small", cost=5),
    )
    found = read(job)
    costs = {
        name: {key: used.spend.cost_usd_micros for key, used in group.items()}
        for name, group in {"agents": found.agents, "roles": found.roles, "models": found.models}.items()
    }
    assert costs == {
        "agents": {"orch": 100, "worker-1": 12, "worker-2": 3},
        "roles": {"implementer": 15, "lead": 100},
        "models": {"m-large": 100, "m-small": 15},
    }
    assert {name: trial.used.spend.cost_usd_micros for name, trial in found.trials.items()} == {
        "alpha__1": 110,
        "alpha__2": 5,
    }
    assert (found.total.spend.calls, found.total.spend.tokens, found.total.spend.cost_usd_micros) == (4, 400, 115)


def test_an_agent_that_is_not_in_the_plan_has_no_role_and_still_counts(job: Path) -> None:
    write(job, receipt(agent="guest"))
    assert read(job).roles["?"].spend.cost_usd_micros == 100


def test_unknown_calls_are_shown_and_never_zero(job: Path) -> None:
    write(job, receipt(), unknown())
    found = read(job)
    assert (found.total.spend.calls, found.total.spend.unknown_calls) == (2, 1)
    shown = "\n".join(lines(found))
    assert "$0.0001+?" in shown
    assert "100+? tokens" in shown
    assert "1 call has no full report (marked +?): the caps count what each had reserved" in shown
    assert to_json(found)["total"]["unknown_calls"] == 1


def test_refused_calls_are_no_calls_and_are_said(job: Path) -> None:
    write(job, receipt(), receipt(outcome="refused", cost=0))
    found = read(job)
    assert (found.total.spend.calls, found.total.refused) == (1, 1)
    assert "1 more call was refused by the gateway, and never went out" in lines(found)


def test_a_call_with_two_receipts_counts_once_by_the_later(job: Path) -> None:
    write(job, receipt(call_id="twice", cost=1), receipt(call_id="twice", cost=2))
    assert read(job).total.spend.cost_usd_micros == 2


def test_a_call_under_way_is_unknown_until_it_has_ended(job: Path) -> None:
    """Its first receipt is written before it goes out, with the bound that caps count."""
    write(job, unknown(call_id="one", charged=900) | {"outcome": "open"})
    books = Books(job)
    before = books.read(running=True)
    assert (before.total.spend.unknown_calls, before.total.charged_usd_micros) == (1, 900)
    write(job, receipt(call_id="one", cost=3))
    after = books.read(running=True)
    assert (after.total.spend.calls, after.total.spend.unknown_calls, after.total.charged_usd_micros) == (1, 0, 3)


def test_calls_that_a_dead_gateway_left_open_are_said_with_the_bound_that_they_are_charged_at(job: Path) -> None:
    """They may have been answered, and paid, all the same."""
    write(job, receipt(cost=1), *(unknown(charged=charged) | {"outcome": "open"} for charged in (900, 100)))
    total = read(job).total
    assert (total.open_calls, total.open_usd_micros, total.open_tokens) == (2, 1_000, 200)
    assert (
        "2 calls are cut off with the gateway or the machine, and may have been paid (marked +?): "
        "the caps count their bounds, $0.0010, 200 tokens"
    ) in lines(read(job))
    assert not [line for line in lines(read(job)) if "no full report" in line]
    running = "\n".join(lines(Books(job).read(running=True)))
    assert "2 calls are under way (marked +?): the caps count their bounds, $0.0010, 200 tokens" in running
    assert to_json(read(job))["total"]["open_usd_micros"] == 1_000


def test_an_open_call_without_a_bound_has_an_unknown_cost(job: Path) -> None:
    write(job, unknown(charged=None) | {"outcome": "open"})
    assert any(line.endswith("the caps count its bound, an unknown cost, 100 tokens") for line in lines(read(job)))


def step_result(name: str, seconds: int) -> dict[str, Any]:
    times = {"started_at": "2026-01-31T10:00:00Z", "finished_at": f"2026-01-31T10:00:{seconds:02}Z"}
    return {"step_name": name, "agent_execution": times}


def test_steps_have_their_own_rows_with_the_time_that_a_team_had_them(job: Path) -> None:
    for trial, times in (("alpha__1", (10, 20)), ("alpha__2", (30, 40))):
        (job / trial).mkdir()
        parts = [step_result("write", times[0]), step_result("amend", times[1])]
        (job / trial / "result.json").write_text(json.dumps({"step_results": parts}))
        journal(job, begun(trial), ended(trial))
        write(job, receipt(trial, step="write", cost=5), receipt(trial, step="amend", cost=7))
    write(job, receipt("beta__1", cost=1))
    found = read(job)
    assert [
        (task, name, step.used.spend.cost_usd_micros, step.seconds) for (task, name), step in found.steps.items()
    ] == [
        ("org/alpha", "write", 10, (10.0, 30.0)),
        ("org/alpha", "amend", 14, (20.0, 40.0)),
    ]
    shown = lines(found)
    assert any(re.match(r"  write of org/alpha +2 .* \$0\.0000 +20\.0$", line) for line in shown)
    assert "median s: how long a team had the step, in trials that have ended" in shown
    told = to_json(found)
    assert [(step["task"], step["step"], step["calls"], step["seconds"]) for step in told["steps"]] == [
        ("org/alpha", "write", 2, [10.0, 30.0]),
        ("org/alpha", "amend", 2, [20.0, 40.0]),
    ]
    assert told["trials"]["alpha__2"]["steps"]["amend"]["cost_usd_micros"] == 7
    assert told["trials"]["beta__1"]["steps"] == {}


def test_of_a_trial_that_runs_the_steps_are_in_the_order_of_their_calls(job: Path) -> None:
    journal(job, begun("alpha__1"))
    write(job, receipt(step="write"), receipt(step="amend"), receipt(step="write"))
    running = Books(job).read(running=True)
    assert [(name, step.used.spend.calls, step.seconds) for name, step in running.trials["alpha__1"].steps.items()] == [
        ("write", 2, ()),
        ("amend", 1, ()),
    ]


def test_without_steps_and_unknown_calls_there_are_no_such_columns(job: Path) -> None:
    write(job, receipt())
    head = lines(read(job))[3]
    assert head.split() == ["calls", "fresh", "cache", "read", "cache", "write", "output", "cost"]
    write(job, unknown())
    assert "unknown" in lines(read(job))[3]


def test_caps_are_shown_nearest_first_with_what_was_charged(job: Path) -> None:
    write(job, receipt(), receipt(), unknown(charged=700), receipt("alpha__2"))
    found = read(job)
    nearest = [(cap.scope, cap.name, cap.agent, cap.unit, cap.charged, cap.cap) for cap in found.caps[:3]]
    assert nearest == [
        ("trial", "alpha__1", None, "usd_micros", 900, 1000),
        ("agent", "alpha__1", "orch", "tokens", 300, 400),
        ("trial", "alpha__1", None, "calls", 3, 10),
    ]
    shown = lines(found)
    assert "  alpha__1: $0.0009 of $0.0010 (90%)  near" in shown
    assert "  orch in alpha__1: 300 tokens of 400 tokens (75%)" in shown
    assert headline(found).endswith("nearest cap: alpha__1: $0.0009 of $0.0010 (90%)")


def test_the_jobs_own_cap_is_one_of_them(job: Path) -> None:
    (job / "buzzbench-plan.json").write_text(json.dumps(PLAN | {"job_budget": {"usd_micros": 1_000, "calls": None}}))
    write(job, receipt(cost=100), receipt("alpha__2", cost=850))
    (cap,) = [cap for cap in read(job).caps if cap.scope == "job"]
    assert (cap.name, cap.agent, cap.unit, cap.charged, cap.cap, cap.part) == (
        "lb-team",
        None,
        "usd_micros",
        950,
        1_000,
        0.95,
    )


def test_a_cap_that_is_reached_says_so(job: Path) -> None:
    write(job, *(receipt(agent="worker-1", cost=250) for _ in range(4)))
    assert "  alpha__1: $0.0010 of $0.0010 (100%)  reached" in lines(read(job))


def test_what_has_no_bound_leaves_its_cap_unknown(job: Path) -> None:
    write(job, unknown(charged=None))
    money = next(cap for cap in read(job).caps if cap.unit == "usd_micros")
    assert (money.charged, money.part) == (None, None)
    assert "  alpha__1: an unknown part of $0.0010" in lines(read(job))


def test_the_journal_says_what_became_of_each_trial(job: Path) -> None:
    journal(job, begun("alpha__1"), ended("alpha__1"), begun("alpha__2"), ended("alpha__2", "unscored"))
    journal(job, replaced("alpha__2"), begun("alpha__3"))
    for name in ("alpha__1", "alpha__3"):
        (job / name).mkdir()
    (job / "alpha__1" / "result.json").write_text(json.dumps(PASSED))
    write(job, receipt("alpha__1"), receipt("alpha__2"), receipt("alpha__3"), receipt("stray"))
    found = read(job)
    states = {"alpha__1": "passed", "alpha__2": "replaced", "alpha__3": "cut off", "stray": "?"}
    assert {name: trial.state for name, trial in found.trials.items()} == states
    running = Books(job).read(running=True)
    assert {name: trial.state for name, trial in running.trials.items()} == states | {"alpha__3": "running"}
    assert (found.ended, found.planned_trials) == (1, 2)
    assert found.total.spend.cost_usd_micros == 400, "a replaced attempt was paid all the same"
    assert not [cap for cap in found.caps if cap.name == "alpha__2"]


PASSED = {
    "task_name": "org/alpha",
    "agent_execution": {"started_at": "2026-01-31T10:00:01Z"},
    "verifier_result": {"rewards": {"reward": 1.0}},
}


def result(job: Path, trial: str, **told: Any) -> None:
    (job / trial).mkdir()
    metadata = {"agent_result": {"metadata": {"buzzbench": told}}}
    (job / trial / "result.json").write_text(json.dumps(metadata))


def test_a_self_report_that_is_missing_or_differs_is_shown(job: Path) -> None:
    """Case 23: the gateway's numbers are shown beside it."""
    counts = {"metered_input_tokens": 1000, "metered_output_tokens": 50}
    result(
        job,
        "alpha__1",
        self_report={
            "orch": {"verdict": "agrees", **counts},
            "worker-1": {"verdict": "missing", **counts},
            "worker-2": {"verdict": "differs", "input_tokens": 900, "output_tokens": None, **counts},
        },
    )
    journal(job, begun("alpha__1"), ended("alpha__1"))
    shown = lines(read(job))
    assert shown[-2:] == [
        "worker-1 in alpha__1: its self-report is missing; the gateway counted 1,000 in and 50 out",
        "worker-2 in alpha__1: its self-report differs: 900 in and an unknown number out; "
        "the gateway counted 1,000 in and 50 out",
    ]


def test_the_self_report_of_a_task_in_steps_is_the_last_steps(job: Path) -> None:
    said = {"worker-1": {"verdict": "missing", "metered_input_tokens": 3, "metered_output_tokens": 4}}
    steps = [{"agent_result": {"metadata": {"buzzbench": {"self_report": told}}}} for told in (None, said)]
    (job / "alpha__1").mkdir()
    (job / "alpha__1" / "result.json").write_text(json.dumps({"agent_result": None, "step_results": steps}))
    journal(job, begun("alpha__1"), ended("alpha__1"))
    assert lines(read(job))[-1].startswith("worker-1 in alpha__1: its self-report is missing")


def test_a_replay_and_a_rehearsal_say_that_no_model_was_asked(job: Path) -> None:
    for field, word in (("replay", "replay"), ("rehearsal", "rehearsal")):
        (job / "buzzbench-plan.json").write_text(json.dumps(PLAN | {field: "good"}))
        assert f"lb-team ({word}: no model was asked)" in headline(read(job))


def test_only_the_dearest_trials_are_shown_to_people_and_all_to_programs(job: Path) -> None:
    write(job, *(receipt(f"alpha__{n}", cost=n) for n in range(30)))
    found = read(job)
    shown = [line for line in lines(found) if re.match(r"  alpha__\d+ \(", line)]
    assert len(shown) == 20
    assert shown[0].startswith("  alpha__29 ")
    assert "the 20 dearest of 30 trials are shown; --json has all" in lines(found)
    assert len(to_json(found)["trials"]) == 30


def test_a_torn_last_receipt_waits_while_the_job_runs_and_is_named_after_it(job: Path) -> None:
    whole = json.dumps(receipt(cost=1))
    (job / "buzzbench-receipts.jsonl").write_text(f"{whole}\n{whole[:30]}")
    books = Books(job)
    assert (books.read(running=True).warnings, books.read(running=True).total.spend.calls) == ((), 1)
    found = books.read()
    assert found.total.spend.calls == 1
    assert "line 2: not a JSON object (cut off?), passed over" in found.warnings[0]


def test_a_second_reading_takes_in_what_was_added(job: Path) -> None:
    write(job, receipt())
    books = Books(job)
    assert books.read(running=True).total.spend.calls == 1
    write(job, receipt(), "not json")
    found = books.read(running=True)
    assert found.total.spend.calls == 2
    assert len(found.warnings) == 1


def test_a_job_without_receipts_or_plan_is_shown_empty(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    found = read(tmp_path / "bare")
    assert found.total.spend.calls == 0
    assert "no caps hold" in lines(found)


def test_the_task_prints_the_newest_job(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(job, receipt())
    settings = Settings(state_dir=job.parent.parent / "state", jobs_dir=job.parent)
    spend(settings, "", watch=False, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["job"], shown["running"], shown["total"]["cost_usd_micros"]) == ("lb-team", False, 100)
    assert shown["caps"][0] == {
        "scope": "agent",
        "name": "alpha__1",
        "agent": "orch",
        "unit": "tokens",
        "cap": 400,
        "charged": 100,
        "part": 0.25,
    }


def test_no_such_job_is_said(job: Path) -> None:
    settings = Settings(state_dir=job.parent.parent / "state", jobs_dir=job.parent)
    with pytest.raises(InvalidInput, match="--job nope: no such job"):
        spend(settings, "nope", watch=False, as_json=False)


@pytest.fixture
def watching(job: Path) -> Iterator[subprocess.Popen[str]]:
    """`inv spend --watch` of a job that this test holds, its output on a pipe."""
    state = job.parent.parent / "state"
    (state / "run").mkdir(parents=True)
    with hold(state / "run" / "lb-team"):
        places = {"BUZZBENCH_STATE_DIR": str(state), "BUZZBENCH_JOBS_DIR": str(job.parent)}
        process = subprocess.Popen(
            [sys.executable, "-m", "invoke", "spend", "--watch"],
            cwd=ROOT,
            env=os.environ | places,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        assert "0 calls" in process.stdout.readline()
        yield process
    process.communicate()


def test_watching_prints_a_line_for_each_change_and_ends_with_ctrl_c(
    watching: subprocess.Popen[str], job: Path
) -> None:
    assert watching.stdout
    write(job, receipt())
    line = watching.stdout.readline()
    assert re.match(r"\d\d:\d\d:\d\d  lb-team  0/2 trials ended, running  1 call  100 tokens  \$0\.0001", line)
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=30)
    assert (watching.returncode, err) == (0, "")
    assert "agent\n  orch " in out


def test_watching_ends_with_the_job_and_shows_what_came_last(job: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "run").mkdir(parents=True)
    places = {"BUZZBENCH_STATE_DIR": str(state), "BUZZBENCH_JOBS_DIR": str(job.parent)}
    command = [sys.executable, "-m", "invoke", "spend", "--job", "lb-team", "--watch", "--json"]
    with hold(state / "run" / "lb-team"):
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | places, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        assert json.loads(process.stdout.readline())["running"] is True
        write(job, receipt())
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    last = json.loads(out.splitlines()[-1])
    assert (last["running"], last["total"]["calls"]) == (False, 1)


def test_a_job_that_does_not_run_is_one_object(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(job, receipt())
    settings = Settings(state_dir=job.parent.parent / "state", jobs_dir=job.parent)
    spend(settings, "lb-team", watch=True, as_json=True)
    assert json.loads(capsys.readouterr().out)["total"]["calls"] == 1


def test_watching_a_job_that_does_not_run_shows_it_and_ends(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(job, receipt())
    settings = Settings(state_dir=job.parent.parent / "state", jobs_dir=job.parent)
    spend(settings, "lb-team", watch=True, as_json=False)
    assert "lb-team  0/2 trials ended  1 call" in capsys.readouterr().out
