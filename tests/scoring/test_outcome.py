"""Who passed, who failed, and what has no score: every way that a trial can end, as a table."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bench.printable import LONGEST
from bench.scoring.outcome import Facts, Fault, Outcome, classify, facts_from

REWARD_1 = {"reward": 1.0}
REWARD_0 = {"reward": 0.0}


def ran(**facts: Any) -> Facts:
    """A trial whose agents had control."""
    return Facts(agents_had_control=True, **facts)


@pytest.mark.parametrize(
    ("facts", "outcome", "reward"),
    [
        # A valid reward decides, whatever the label (public case 5).
        (ran(rewards=REWARD_1), "passed", 1.0),
        (ran(rewards=REWARD_0), "failed", 0.0),
        (ran(rewards={"reward": 0.4}), "failed", 0.4),
        (ran(rewards={"accuracy": 1}), "passed", 1.0),
        (ran(rewards={"reward": 1.0, "speed": 0.2}), "passed", 1.0),
        (ran(rewards=REWARD_1, exception_type="AgentTimeoutError"), "passed", 1.0),
        (ran(rewards=REWARD_0, exception_type="AgentTimeoutError"), "failed", 0.0),
        (ran(rewards=REWARD_1, labels=("loop",)), "passed", 1.0),
        # The agents had control and there is no reward.
        (ran(exception_type="AgentTimeoutError"), "failed", 0.0),
        (ran(exception_type="VerifierTimeoutError"), "failed", 0.0),
        (ran(exception_type="AddTestsDirError"), "failed", 0.0),
        (ran(exception_type="SandboxLikelyOutOfMemoryError"), "failed", 0.0),
        (ran(exception_type="RuntimeError"), "failed", 0.0),
        (ran(exception_type="RewardFileNotFoundError", labels=("budget",)), "failed", 0.0),
        (ran(exception_type="RewardFileNotFoundError", labels=("agent_timeout",)), "failed", 0.0),
        # A verifier that ran and wrote nothing is the task's fault (public case 60); nothing at all is invalid.
        (ran(exception_type="RewardFileNotFoundError"), "unscored", None),
        (ran(exception_type="RewardFileEmptyError"), "unscored", None),
        (ran(), "unscored", None),
        # What the verifier wrote can't be judged by.
        (ran(rewards={"reward": math.nan}), "unscored", None),
        (ran(rewards={"reward": math.inf}), "unscored", None),
        (ran(rewards={"reward": 10**400}), "unscored", None),
        (ran(rewards={"reward": -0.5}), "unscored", None),
        (ran(rewards={"reward": "1"}), "unscored", None),
        (ran(rewards={"reward": True}), "unscored", None),
        (ran(rewards={"a": 1.0, "b": 1.0}), "unscored", None),
        # Proved from the host's side: no reward counts (public case 11).
        (ran(rewards=REWARD_1, fault=Fault("upstream_refused", "402")), "unscored", None),
        (ran(rewards=REWARD_0, fault=Fault("script_mismatch", "step merge")), "unscored", None),
        (ran(rewards=REWARD_1, cancelled=True), "unscored", None),
        (ran(exception_type="CancelledError"), "unscored", None),
        (ran(exception_type="HealthcheckError", exception_message="relay_gone: …"), "unscored", None),
        (Facts(exception_type="EnvironmentStartTimeoutError"), "unscored", None),
        (Facts(exception_type="AgentSetupTimeoutError"), "unscored", None),
        (Facts(exception_type="SandboxBuildFailedError", rewards=REWARD_0), "unscored", None),
        (Facts(), "unscored", None),
        # The host's verdict on the evidence holds.
        (ran(rewards=REWARD_1, host_checks={"a": False}, verifier_checks={"a": True}), "failed", 0.0),
        (ran(rewards=REWARD_1, host_checks={"a": False}), "failed", 0.0),
        (ran(rewards=REWARD_1, host_checks={"a": True}, verifier_checks={"a": True}), "passed", 1.0),
        (ran(rewards=REWARD_0, host_checks={"a": True}, verifier_checks={"a": True}), "failed", 0.0),
        (ran(host_checks={"a": False}, exception_type="RewardFileNotFoundError"), "failed", 0.0),
        (
            ran(
                rewards=REWARD_0,
                host_checks={"a": True},
                verifier_checks={"a": False},
                file_checks={"f": True},
            ),
            "passed",
            1.0,
        ),
        (
            ran(
                rewards=REWARD_1,
                host_checks={"a": True},
                verifier_checks={"a": False},
                file_checks={"f": False},
            ),
            "failed",
            0.0,
        ),
    ],
)
def test_every_end_has_its_outcome(facts: Facts, outcome: str, reward: float | None) -> None:
    decided = classify(facts)
    assert (decided.outcome, decided.reward) == (outcome, reward)
    assert decided.outcome == "passed" or decided.reason


@pytest.mark.parametrize(
    ("facts", "label"),
    [
        (ran(rewards=REWARD_1, exception_type="AgentTimeoutError"), "agent_timeout"),
        (ran(exception_type="DownloadVerifierDirError"), "environment_lost"),
        (ran(exception_type="SandboxLost"), "environment_lost"),
        (ran(exception_type="VerifierTimeoutError"), "verifier_timeout"),
        (ran(exception_type="RuntimeError"), "no_reward"),
        (ran(rewards={"reward": 1.5}), "reward_out_of_range"),
        (ran(rewards={"reward": -1}), "reward_out_of_range"),
        (ran(rewards=REWARD_1, host_checks={"a": True}, verifier_checks={"a": False}), "tampered"),
        (ran(rewards=REWARD_1, host_checks={"a": True}, verifier_checks={"a": True, "b": True}), "tampered"),
        (ran(rewards=REWARD_1, host_checks={"a": False}, verifier_checks={"a": False}), "tampered"),
        (ran(rewards=REWARD_1, labels=("relay_restarted",)), "relay_restarted"),
        (ran(fault=Fault("relay_gone", "x"), labels=("tainted",)), "tainted"),
        (ran(fault=Fault("script_mismatch", "x")), "script_mismatch"),
    ],
)
def test_what_happened_beside_is_a_label(facts: Facts, label: str) -> None:
    assert label in classify(facts).labels


def test_an_out_of_range_reward_is_no_score() -> None:
    decided = classify(ran(rewards={"reward": 1.5}))
    assert decided == Outcome("unscored", None, "the reward is not from 0 to 1: 1.5", ("reward_out_of_range",))
    capped = classify(ran(rewards={"reward": 1.5}, labels=("budget",)))
    assert (capped.outcome, capped.reason) == ("failed", "no reward: budget")


def test_a_reward_that_speaks_against_the_files_counts_for_nothing() -> None:
    """What the team left running may have written it after the verifier."""
    facts = ran(rewards=REWARD_1, host_checks={"a": True}, verifier_checks={"a": True}, file_checks={"f": False})
    assert classify(facts) == Outcome("failed", 0.0, "files: f", ("tampered",))


def test_what_the_verifier_found_wrong_is_the_reason_where_the_host_has_no_verdict() -> None:
    facts = ran(rewards=REWARD_0, verifier_checks={"a": False, "b": True}, file_checks={"f": False})
    assert classify(facts).reason == "evidence: a"


def test_what_a_verifier_finds_is_no_work_of_a_team_that_never_played() -> None:
    """Its cap or its time was used up, and what is there was there before."""
    idle = ran(rewards=REWARD_1, labels=("budget", "never_played"), ended_because="the trial has a cap of 3 calls")
    why = "never played: the trial has a cap of 3 calls"
    assert classify(idle) == Outcome("failed", 0.0, why, ("budget", "never_played"))
    gone = ran(rewards=REWARD_1, labels=("never_played",), fault=Fault("relay_gone", "…"))
    assert classify(gone).outcome == "unscored"
    told = {"labels": ["never_played"], "reason": "it was late", "timings": {"post": 0.1}}
    facts = facts_from({"agent_result": {"metadata": {"buzzbench": told}}, "verifier_result": {"rewards": REWARD_1}})
    assert classify(facts).reason == "never played: it was late"


def test_an_equal_verdict_is_not_tampering() -> None:
    facts = ran(rewards=REWARD_0, host_checks={"a": False}, verifier_checks={"a": False})
    assert classify(facts) == Outcome("failed", 0.0, "evidence: a")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (ran(fault=Fault("script_mismatch", "step 'merge' of orch expected 'X'")), "script_mismatch: step 'merge'"),
        (Facts(exception_type="AgentSetupTimeoutError", exception_message="360 s\nmore"), "never started: AgentSetup"),
        (
            Facts(
                exception_type="RuntimeError",
                exception_message="Docker compose command failed for environment a. Command: docker compose up. "
                "Return code: 18. Stdout:  main Pulling \n main Error\nno such image: b:1\n. Stderr: None. ",
            ),
            "never started: docker compose ended with 18: no such image: b:1",
        ),
        (Facts(), "never started"),
        (ran(cancelled=True), "cancelled"),
        (ran(exception_type="HealthcheckError"), "the infrastructure failed"),
        (ran(exception_type="RewardFileNotFoundError", verifier_tail="a\nb\nboom\n"), "its last lines: a | b | boom"),
        (ran(), "the verifier wrote no reward"),
        (ran(reward_file="reward.txt holds '1'"), "the verifier wrote no reward"),
        (
            ran(reward_file="reward.txt holds 'x'", exception_type="VerifierOutputParseError"),
            "reward.txt holds 'x', which",
        ),
        (ran(rewards={"a": 1.0, "b": 0.0}), "2 rewards, none of them named `reward`"),
        (ran(rewards={"reward": math.nan}), "the reward is nan, not a finite number"),
        (ran(rewards=REWARD_0, file_checks={"report": False, "sum": True}), "files: report"),
        (ran(rewards=REWARD_0), "reward 0"),
        (ran(host_checks={"thread": False, "asked": False}), "evidence: asked, thread"),
        (ran(labels=("loop",)), "no reward: loop"),
        (ran(exception_type="RuntimeError", exception_message="boom"), "no reward: RuntimeError: boom"),
    ],
)
def test_the_reason_says_why(facts: Facts, reason: str) -> None:
    assert reason in classify(facts).reason


RESULT: dict[str, Any] = {
    "exception_info": {"exception_type": "AgentTimeoutError", "exception_message": "too late"},
    "agent_execution": {"started_at": "2026-11-30T12:00:00Z"},
    "verifier_result": {"rewards": {"reward": 1.0}},
    "agent_result": {
        "metadata": {
            "buzzbench": {
                "labels": ["relay_restarted"],
                "fault": {"kind": "budget", "reason": "over"},
                "timings": {"post": 0.1},
            }
        }
    },
}


def test_what_agents_wrote_into_a_reason_steers_no_terminal_and_is_no_line_of_its_own() -> None:
    forged = "x\n✓ task/other  0.1 s\x1b[31m"
    files = classify(ran(rewards={"reward": 0.0}, file_checks={forged: False}))
    printed = classify(ran(rewards=None, verifier_tail=forged))
    long = classify(ran(rewards={"reward": 0.0}, file_checks={"y" * 1_000_000: False}))
    assert files.reason == "files: x\\n✓ task/other  0.1 s\\x1b[31m"
    assert printed.reason.endswith("its last lines: x | ✓ task/other  0.1 s\\x1b[31m")
    assert len(long.reason) == LONGEST


def test_facts_are_read_from_a_trials_result() -> None:
    facts = facts_from(RESULT, checks={"evidence": {"a": True}, "files": {"f": False}})
    assert facts == Facts(
        exception_type="AgentTimeoutError",
        exception_message="too late",
        rewards={"reward": 1.0},
        fault=Fault("budget", "over"),
        labels=("relay_restarted",),
        agents_had_control=True,
        verifier_checks={"a": True},
        file_checks={"f": False},
    )


@pytest.mark.parametrize(
    "garbage",
    [None, [], "x", {}, {"agent_result": 3}, {"agent_result": {"metadata": {"buzzbench": 1}}}, {"exception_info": []}],
)
def test_a_damaged_result_has_no_score(garbage: Any) -> None:
    assert classify(facts_from(garbage, checks=garbage)).outcome == "unscored"


def test_control_began_with_the_task_not_with_the_run() -> None:
    unposted = {**RESULT, "agent_result": {"metadata": {"buzzbench": {"timings": {"connect": 0.1}}}}}
    assert not facts_from(unposted).agents_had_control
    assert facts_from({**RESULT, "agent_result": {}}).agents_had_control
