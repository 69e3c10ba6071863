"""Reading a job back: nothing that a crash, a full disk or an agent leaves in the files breaks the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench import records
from bench.scoring import verdicts
from bench.scoring.outcome import Outcome
from bench.trial import journal
from bench.trial.journal import AttemptReplaced, JobStopped

PLAN_BETA = {"name": "org/beta", "directory": "/nowhere/beta"}
PLAN = {
    "schema": "buzzbench-plan-1",
    "job": "lb-team",
    "rehearsal": None,
    "stack": "embedded",
    "environment": "docker",
    "condition": "team",
    "condition_sha256": "ab" * 32,
    "attempts": 2,
    "tasks": [{"name": "org/alpha", "directory": "/nowhere/alpha"}, PLAN_BETA],
}


def result(task: str = "org/alpha", reward: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """A trial's result.json as Harbor 0.26 writes it, cut to what we read."""
    return {
        "task_name": task,
        "started_at": "2026-01-31T10:00:00Z",
        "finished_at": "2026-01-31T10:00:02.500000Z",
        "agent_execution": {"started_at": "2026-01-31T10:00:01Z", "finished_at": "2026-01-31T10:00:02Z"},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": None,
    } | more


def new_job(home: Path) -> Path:
    """The directory of a job that has its plan, and no trial yet."""
    directory = home / "lb-team"
    directory.mkdir()
    (directory / records.PLAN).write_text(json.dumps(PLAN))
    return directory


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return new_job(tmp_path)


def add(job: Path, trial: str, content: dict[str, Any] | str | None) -> Path:
    directory = job / trial
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    if content is not None:
        (directory / "result.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return directory


def test_a_finished_job_is_read_whole(job: Path) -> None:
    add(job, "alpha__1", result(task_checksum="c0ffee"))
    add(job, "alpha__2", result(reward=0.0))
    add(job, "beta__1", result("org/beta"))
    add(job, "beta__2", result("org/beta"))
    read = records.read_job(job)
    assert read.counts == {"passed": 3, "failed": 1, "unscored": 0}
    assert read.complete
    assert read.trials[0].seconds == 2.5
    assert [trial.checksum for trial in read.trials] == ["c0ffee", "", "", ""]
    assert read.trials[0].task == "org/alpha"


@pytest.mark.parametrize("content", [None, "", "{", '{"task_name": "org/al', "[]", "null", "\x00"])
def test_an_unfinished_or_damaged_result_is_unscored_and_breaks_nothing(job: Path, content: str | None) -> None:
    add(job, "alpha__1", content)
    add(job, "beta__1", result("org/beta"))
    read = records.read_job(job)
    assert read.counts == {"passed": 1, "failed": 0, "unscored": 1}
    assert read.trials[0].outcome.reason in ("cut off", "its result.json is damaged")
    assert not read.complete


def test_planned_trials_that_left_nothing_are_counted(job: Path) -> None:
    add(job, "alpha__1", result())
    read = records.read_job(job)
    assert read.planned_trials == 4
    assert read.missing == 3
    assert not read.complete


def test_a_job_without_a_plan_is_still_read(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    add(tmp_path / "job", "alpha__1", result())
    read = records.read_job(tmp_path / "job")
    assert read.plan.job == "job"
    assert read.counts["passed"] == 1


def receipt(trial: str, cost: int | None = 7, **more: Any) -> str:
    tokens = {"input_tokens": 10, "cache_read_tokens": 20, "cache_write_tokens": 0, "output_tokens": 5}
    return json.dumps({"trial": trial, "cost_usd_micros": cost, **tokens, **more})


def test_receipts_are_summed_by_trial_and_unknown_is_not_zero(job: Path) -> None:
    add(job, "alpha__1", result())
    lines = [
        receipt("alpha__1"),
        receipt("alpha__1"),
        receipt("alpha__1", None, output_tokens=None),
        receipt("beta__9"),
    ]
    (job / records.RECEIPTS).write_text("\n".join(lines) + "\n")
    spend = records.read_job(job).trials[0].spend
    assert (spend.calls, spend.cost_usd_micros, spend.unknown_calls) == (3, 14, 1)
    assert (spend.input_tokens, spend.cache_read_tokens, spend.output_tokens) == (30, 60, 10)


def test_a_trial_that_two_upstreams_served_is_labelled(job: Path) -> None:
    """Case 62: it measures no one condition. What says nothing of itself, or is of another model, is no second one."""
    lines = []
    for name, *served in (
        ("alpha__1", ("m", "north"), ("m", "south")),
        ("alpha__2", ("m", "north"), ("n", "south"), ("m", None)),
    ):
        add(job, name, result())
        lines += [receipt(name, endpoint="e", model=model, served_provider=by) for model, by in served]
    add(job, "beta__1", result("org/beta"))
    lines += [receipt("beta__1", endpoint="e", model="m", served_model=model) for model in ("m-0801", "m-0902")]
    (job / records.RECEIPTS).write_text("\n".join(lines) + "\n")
    labels = {trial.trial: trial.outcome.labels for trial in records.read_job(job).trials}
    assert labels == {"alpha__1": ("mixed_upstream",), "alpha__2": (), "beta__1": ("mixed_upstream",)}


def test_a_cut_off_receipt_is_named_and_the_others_count(job: Path) -> None:
    add(job, "alpha__1", result())
    (job / records.RECEIPTS).write_text(receipt("alpha__1") + '\n{"trial": "alpha__1", "inp')
    begun(job, "alpha__1")
    read = records.read_job(job)
    assert read.trials[0].spend.calls == 1
    assert read.unsure, "a receipt may have been cut off with it"
    assert read.warnings == (f"{job / records.RECEIPTS}, line 2: not a JSON object (cut off?), passed over",)


def judged(job: Path, tmp_path: Path, source: str, *, folder: str = "own") -> tuple[Path, Path]:
    """A trial with evidence, and the judge of its task, which is a stranger's."""
    task = tmp_path / folder / "alpha"
    (task / "tests").mkdir(parents=True)
    (task / "tests" / "judge.py").write_text(source)
    plan = PLAN | {"tasks": [{"name": "org/alpha", "directory": str(task)}, PLAN_BETA]}
    (job / records.PLAN).write_text(json.dumps(plan))
    directory = add(job, "alpha__1", result())
    (directory / records.EVIDENCE).write_text('{"messages": []}')
    return directory, task / "tests" / "judge.py"


def test_a_task_of_anybodys_is_judged_on_the_host_too(job: Path, tmp_path: Path) -> None:
    """A reward that the team wrote itself says nothing where the evidence speaks against it."""
    judged(job, tmp_path, "def judge(evidence): return {'asked': bool(evidence['messages'])}\n")
    assert records.read_job(job).trials[0].outcome == Outcome("failed", 0.0, "evidence: asked", ("tampered",))


def test_the_hosts_verdict_once_given_is_kept_and_nothing_is_run_again(job: Path, tmp_path: Path) -> None:
    directory, judge = judged(job, tmp_path, "def judge(evidence): return {'asked': False}\n")
    begun(job, directory.name)
    first = records.read_job(job)
    judge.write_text("def judge(evidence): return {'asked': True}\n")
    assert records.read_job(job) == first
    judge.unlink()
    assert records.read_job(job) == first
    (directory / records.EVIDENCE).write_text("{}")
    again = records.read_job(job)
    assert again.trials == first.trials
    assert again.warnings == (
        f"{directory / records.EVIDENCE}: not the evidence that was judged; the verdict on that one stands",
    )


def test_a_broken_judge_is_not_run_again_until_it_is_another(job: Path, tmp_path: Path) -> None:
    source = "import time\nBEGAN = time.time()\ndef judge(evidence): raise ValueError(BEGAN)\n"
    _, judge = judged(job, tmp_path, source)
    first = records.read_job(job)
    assert "judge(evidence) raised ValueError" in first.trials[0].outcome.reason
    assert first.trials[0].outcome.outcome == "unscored"
    assert records.read_job(job) == first
    judge.write_text("def judge(evidence): return {'asked': True}\n")
    assert records.read_job(job).trials[0].outcome.outcome == "passed"


@pytest.mark.usefixtures("no_sandbox")
def test_a_verdict_that_nobody_could_give_is_said_and_given_later(job: Path, tmp_path: Path) -> None:
    directory, judge = judged(job, tmp_path, "def judge(evidence): return {'asked': False}\n")
    begun(job, directory.name)
    read = records.read_job(job)
    assert read.trials[0].outcome == Outcome("passed", 1.0, "", ("not_judged_again",))
    assert [warning.partition(" (")[0] for warning in read.warnings] == [
        f"{judge}: this judge runs in a sandbox only, and there is none"
    ]
    assert not (directory / records.CHECKS).exists()


def test_a_directory_of_an_attempt_that_never_began_says_so(job: Path) -> None:
    add(job, "alpha__1", result())
    add(job, "beta__1", None)
    (job / records.JOURNAL).write_text(
        '{"entry": "attempt_started", "trial": "alpha__1", "task": "org/alpha", "at": ""}\n'
    )
    assert records.read_job(job).trials[1].outcome.reason == "not begun when the job stopped"


def test_a_judge_that_breaks_makes_its_trial_unscored_and_breaks_nothing_else(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "ROOT", tmp_path)
    task = tmp_path / "buzz-dataset" / "alpha"
    (task / "tests").mkdir(parents=True)
    (task / "tests" / "judge.py").write_text("def judge(evidence): return 1 / 0\n")
    plan = PLAN | {"tasks": [{"name": "org/alpha", "directory": str(task)}, PLAN_BETA]}
    (job / records.PLAN).write_text(json.dumps(plan))
    (add(job, "alpha__1", result()) / records.EVIDENCE).write_text("{}")
    add(job, "beta__1", result("org/beta"))
    broken, fine = records.read_job(job).trials
    assert broken.outcome.outcome == "unscored"
    assert "judge(evidence) raised" in broken.outcome.reason
    assert fine.outcome.outcome == "passed"


def test_a_trial_of_a_task_that_was_not_selected_is_an_error_and_counts_for_nothing(job: Path) -> None:
    """Case 1."""
    for trial in ("alpha__1", "alpha__2", "beta__1", "beta__2"):
        add(job, trial, result(f"org/{trial.partition('__')[0]}"))
    assert records.read_job(job).complete
    add(job, "gamma__1", result("org/gamma"))
    read = records.read_job(job)
    assert [trial.trial for trial in read.unplanned] == ["gamma__1"]
    assert (read.counts["passed"], read.missing, read.complete) == (4, 0, False)


def test_an_attempt_that_left_no_result_is_never_taken_for_another_tasks(job: Path) -> None:
    add(job, "cut-off-name-of-a-very-long-task__1", None)
    assert records.read_job(job).unplanned == ()


@pytest.mark.parametrize(
    ("source", "planned"),
    [
        ({"name": "org/cobol-one"}, True),
        ({"name": "org/fortran"}, False),
        ({"name": "org/cobol-two"}, False),
        ({"path": "tasks/cobol-three", "git_url": "x"}, False),
    ],
)
def test_of_a_registry_dataset_the_globs_tell_what_was_selected(
    job: Path, source: dict[str, str], planned: bool
) -> None:
    plan = PLAN | {"tasks": [], "dataset": "org/set", "include": ["*/cobol*"], "exclude": ["*two"]}
    (job / records.PLAN).write_text(json.dumps(plan))
    add(job, "a__1", result("another/name", config={"task": source}))
    read = records.read_job(job)
    assert (bool(read.trials), bool(read.unplanned)) == (planned, not planned)
    assert read.plan.dataset == "org/set"


def test_the_tasks_of_missing_trials_are_named(job: Path) -> None:
    add(job, "alpha__1", result())
    assert records.read_job(job).missing_of == {"org/alpha": 1, "org/beta": 2}


AT = datetime(2026, 1, 31, tzinfo=UTC)


def begun(job: Path, *trials: str) -> Path:
    """The job's journal, with these attempts begun."""
    path = job / records.JOURNAL
    for trial in trials:
        journal.attempt_started(path, trial=trial, task=f"org/{trial.split('__')[0]}", at=AT)
    return path


def test_a_replaced_attempt_is_no_trial_any_more_but_its_cost_stays_booked(job: Path) -> None:
    add(job, "alpha__1", result())
    path = begun(job, "alpha__0", "alpha__1")
    journal.append(path, AttemptReplaced("alpha__0", "org/alpha", "relay_gone: …", "/archive/1/alpha__0", ""))
    (job / records.RECEIPTS).write_text(f"{receipt('alpha__0', 5)}\n{receipt('alpha__1', 7)}\n")
    read = records.read_job(job)
    assert [trial.trial for trial in read.trials] == ["alpha__1"]
    assert [(r.trial, r.task, r.reason, r.spend.cost_usd_micros) for r in read.replaced] == [
        ("alpha__0", "org/alpha", "relay_gone: …", 5)
    ]
    assert read.spend.cost_usd_micros == 12


def test_a_replaced_attempt_whose_directory_is_still_there_counts_as_replaced(job: Path) -> None:
    """A crash came between the journal's line and the move."""
    add(job, "alpha__0", None)
    journal.append(begun(job, "alpha__0"), AttemptReplaced("alpha__0", "org/alpha", "unfinished", "/archive", ""))
    read = records.read_job(job)
    assert read.trials == ()
    assert [attempt.trial for attempt in read.replaced] == ["alpha__0"]
    assert read.missing == 4


def test_an_attempt_whose_directory_somebody_removed_keeps_its_cost(job: Path) -> None:
    begun(job, "alpha__1")
    (job / records.RECEIPTS).write_text(receipt("alpha__1", 5) + "\n")
    read = records.read_job(job)
    assert [(r.reason, r.spend.cost_usd_micros) for r in read.replaced] == [("its directory is gone", 5)]


def test_why_a_job_stopped_is_read_back(job: Path) -> None:
    stop = JobStopped("budget", "the job's cap of $1 is reached", journal.iso(AT))
    journal.append(job / records.JOURNAL, stop)
    assert records.read_job(job).stop == stop


def test_of_a_registry_dataset_harbor_says_how_many_trials_there_are(job: Path) -> None:
    (job / records.PLAN).write_text(json.dumps(PLAN | {"tasks": []}))
    (job / "result.json").write_text('{"n_total_trials": 12}')
    assert records.read_job(job).planned_trials == 12


def test_an_unfinished_trial_is_of_the_task_that_its_configuration_names(job: Path) -> None:
    """Harbor cuts a directory's name after 32 characters (HARBOR.md section 9)."""
    directory = add(job, "alph__1", None)
    (directory / "config.json").write_text('{"task": {"path": "/nowhere/alpha"}}')
    assert records.read_job(job).trials[0].task == "org/alpha"


def test_a_trial_without_any_file_is_of_the_task_that_the_journal_or_its_name_tells(job: Path) -> None:
    """A full disk leaves such: its row must not stand beside that of its task."""
    for name in ("alpha__1", "gamma__1", "al__1"):
        (job / name).mkdir()
    begun(job, "gamma__1")
    assert {trial.trial: trial.task for trial in records.read_job(job).trials} == {
        "alpha__1": "org/alpha",
        "gamma__1": "org/gamma",
        "al__1": "al",
    }


def test_a_reward_file_without_a_number_is_shown_with_what_it_holds(job: Path) -> None:
    raised = {"exception_type": "VerifierOutputParseError", "exception_message": "…"}
    for name, text in (("alpha__1", "great\n"), ("alpha__2", ""), ("beta__1", "nan"), ("beta__2", "1" * 60)):
        directory = add(job, name, result(reward=None, exception_info=raised))
        (directory / "verifier").mkdir()
        (directory / "verifier" / "reward.txt").write_text(text)
    assert [trial.outcome.reason for trial in records.read_job(job).trials] == [
        "the verifier's reward.txt holds 'great', which is no finite number",
        "the verifier's reward.txt is empty, which is no finite number",
        "the verifier's reward.txt holds 'nan', which is no finite number",
        f"the verifier's reward.txt holds '{'1' * 40}' …, which is no finite number",
    ]


def test_a_damaged_file_is_named_with_its_path(job: Path) -> None:
    add(job, "alpha__1", "{")
    (job / records.PLAN).write_text("{")
    warnings = records.read_job(job).warnings
    assert any(w.startswith(f"{job / 'alpha__1' / 'result.json'}: not a JSON object") for w in warnings)
    assert any(w.startswith(f"{job / records.PLAN}:1: is damaged") for w in warnings)


def test_what_an_agent_left_as_checks_breaks_nothing(job: Path) -> None:
    for number, checks in enumerate(["[" * 100_000, "x" * 2_000_000, '{"evidence": 3}', "\udc80"], 1):
        verifier = add(job, f"alpha__{number}", result()) / "verifier"
        verifier.mkdir()
        (verifier / "checks.json").write_bytes(checks.encode(errors="surrogatepass"))
    (add(job, "beta__1", result("org/beta")) / "verifier" / "checks.json").mkdir(parents=True)
    assert records.read_job(job).counts["passed"] == 5


def test_a_verdict_that_cannot_be_kept_is_given_all_the_same(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report of a job on a full or a read-only disk."""

    def refused(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setattr(verdicts, "write_atomically", refused)
    task = tmp_path / "buzz-dataset" / "alpha"
    (task / "tests").mkdir(parents=True)
    (task / "tests" / "judge.py").write_text("def judge(evidence): return {'asked': False}\n")
    plan = PLAN | {"tasks": [{"name": "org/alpha", "directory": str(task)}, PLAN_BETA]}
    (job / records.PLAN).write_text(json.dumps(plan))
    directory = add(job, "alpha__1", result())
    (directory / records.EVIDENCE).write_text("{}")
    assert records.read_job(job).trials[0].outcome == Outcome("failed", 0.0, "evidence: asked", ("tampered",))
    assert not (directory / records.CHECKS).exists()


WORDS = """
task_name started_at finished_at verifier_result rewards reward exception_info exception_type agent_result metadata
buzzbench labels fault timings post step_results task path tasks name directory attempts trial entry call_id
cost_usd_micros input_tokens evidence files
"""
FIELDS = st.sampled_from(WORDS.split())


def test_a_clock_that_was_set_back_makes_no_negative_time(job: Path) -> None:
    add(job, "alpha__1", result(finished_at="2026-01-31T09:59:00Z"))
    assert records.read_job(job).trials[0].seconds == 0.0


@pytest.mark.parametrize(
    ("finished_at", "jumped_s"), [("2026-01-31T11:00:02.500Z", 3600.0), ("2026-01-31T09:00:02.500Z", -3600.0)]
)
def test_a_clock_that_jumped_while_a_trial_ran_is_said_and_not_counted_as_its_time(
    job: Path, finished_at: str, jumped_s: float
) -> None:
    add(job, "alpha__1", result(finished_at=finished_at))
    at = datetime(2026, 1, 31, tzinfo=UTC)
    journal.attempt_started(job / records.JOURNAL, trial="alpha__1", task="org/alpha", at=at)
    outcome = Outcome("passed", 1.0, "")
    journal.trial_ended(job / records.JOURNAL, trial="alpha__1", outcome=outcome, at=at, clock_jumped_s=jumped_s)
    read = records.read_job(job)
    assert read.trials[0].seconds == 2.5
    assert read.trials[0].is_scored
    assert f"{job / 'alpha__1'}: the clock jumped by {jumped_s:+.0f} s while it ran: times within it are unsure" in (
        read.warnings
    )


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS | st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_nothing_that_is_in_the_files_breaks_a_summary(job: Path, data: st.DataObject) -> None:
    trial = job / "alpha__1"
    (trial / "verifier").mkdir(parents=True, exist_ok=True)
    for path in (
        *(job / name for name in (records.PLAN, records.JOURNAL, records.RECEIPTS, "result.json")),
        *(trial / name for name in ("result.json", "config.json", records.CHECKS, "verifier/checks.json")),
    ):
        path.write_text(json.dumps(data.draw(ANYTHING | st.dictionaries(FIELDS, ANYTHING, max_size=4))))
    read = records.read_job(job)
    assert [each.trial for each in read.trials] == ["alpha__1"]
    assert sum(read.counts.values()) == 1
