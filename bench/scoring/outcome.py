"""`classify(facts)`: passed, failed or unscored, and why. Pure; the order is DESIGN's.

1. A cause proved from the host's side that ended the trial, or kept it from being judged: unscored. And a team that no
   model call went out for (its cap or its time was used up in the steps before) has never played, so that what a
   verifier finds is not its work: failed.
2. The host's own verdict on the evidence.
3. A finite reward from 0 to 1: passed where it is 1.0, else failed with the reward kept. Labels don't change it.
4. The agents had control and there is no reward: failed, with a label; unless a verifier that ran to its end after a
   team that ended on its own account wrote none, which is the task's fault (public case 60): unscored.

    classify(Facts(agents_had_control=True, rewards={"reward": 1.0})).outcome  # "passed"
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bench.printable import one_line

OWN_ENDS = frozenset({"agent_timeout", "budget", "loop", "agents_died"})
"""Labels of ends that are the team's own doing."""

VERIFIER_WROTE_NOTHING = frozenset({"RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError"})
"""Harbor's exceptions for a verifier that ran and left no reward (HARBOR.md section 7.5)."""

UNREADABLE = frozenset({"RewardFileEmptyError", "VerifierOutputParseError"})
"""Those of them where there is a reward file, with something else than a number in it."""

LABEL_OF_EXCEPTION = {
    "AgentTimeoutError": "agent_timeout",
    "VerifierTimeoutError": "verifier_timeout",
    "AddTestsDirError": "environment_lost",
    "DownloadVerifierDirError": "environment_lost",
    "SandboxLikelyOutOfMemoryError": "environment_lost",
    "SandboxLost": "environment_lost",
    "MemoryLimitExceededError": "environment_lost",
}
"""What the agents can bring about once they have control: a label, never an excuse."""

NEVER_PLAYED = "never_played"
"""The label of a trial, or of a step of its task, in which no model call of the team went out."""

SCRIPT_FAULTS = frozenset({"script_mismatch", "script_exhausted", "replay_miss"})
"""Faults that are labels, too: they say that a rehearsal's script, or a replay's cassette, has to be looked at."""

COMPOSE_FAILED = re.compile(
    r"^Docker compose command failed .*Return code: (\d+)\. Stdout: (.*)\. Stderr: [^\n]*\Z", re.DOTALL
)
"""How Harbor's Docker environment tells of it, with all that Compose printed: its last line says what is wrong."""

OUT_OF_RANGE = "the reward is not from 0 to 1"


@dataclass(frozen=True)
class Fault:
    """A cause proved from the host's side, such as kind `upstream_refused`."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Facts:
    """What is known of one trial.

    `rewards` is what Harbor read from the verifier, None where there is nothing. `host_checks` is the verdict of the
    task's `judge()` on the host's own evidence, `verifier_checks` and `file_checks` the two halves of checks.json.
    """

    exception_type: str | None = None
    exception_message: str = ""
    rewards: Mapping[str, float] | None = None
    fault: Fault | None = None
    labels: tuple[str, ...] = ()
    agents_had_control: bool = False
    set_up_after_control: bool = False
    """Of a step of a task: whether the agents had control before Harbor made it ready."""
    never_played: bool = False
    """Of such a step: whether it was never handed to the agents. What a verifier says of it is then not theirs."""
    cancelled: bool = False
    host_checks: Mapping[str, bool] | None = None
    verifier_checks: Mapping[str, bool] | None = None
    file_checks: Mapping[str, bool] | None = None
    verifier_tail: str = ""
    ended_because: str = ""
    """Why the team's work ended, in one line; empty where it said that it is done."""
    reward_file: str = ""
    """What the verifier's reward file holds, such as `reward.txt holds 'great'`; empty where there is none."""


@dataclass(frozen=True)
class Outcome:
    """`reward` is None where nothing was judged. `reason` is one line, empty for a plain pass."""

    outcome: Literal["passed", "failed", "unscored"]
    reward: float | None
    reason: str
    labels: tuple[str, ...] = field(default=())


def classify(facts: Facts) -> Outcome:
    """The outcome of a trial with these facts. Its reason is one line, whatever agents have written into it."""
    found = _classified(facts)
    return replace(found, reason=one_line(found.reason))


def _classified(facts: Facts) -> Outcome:
    labels = list(facts.labels)
    if facts.exception_type in LABEL_OF_EXCEPTION and facts.agents_had_control:
        labels.append(LABEL_OF_EXCEPTION[facts.exception_type])
    if facts.fault is not None and facts.fault.kind in SCRIPT_FAULTS:
        labels.append(facts.fault.kind)

    unscored = proved_cause(facts)
    if unscored is not None:
        return Outcome("unscored", None, unscored, _unique(labels))

    if NEVER_PLAYED in labels:
        because = facts.ended_because or "no model call went out"
        return Outcome("failed", 0.0, f"never played: {because}", _unique(labels))

    reward, complaint = _reward(facts.rewards)
    if complaint.startswith(OUT_OF_RANGE):
        labels.append("reward_out_of_range")
    if facts.host_checks is not None:
        if _tampered(facts, reward):
            labels.append("tampered")
        failed = sorted(name for name, held in facts.host_checks.items() if not held)
        if failed:
            return Outcome("failed", 0.0, f"evidence: {', '.join(failed)}", _unique(labels))
        if "tampered" in labels and facts.file_checks is not None:
            reward = float(all(facts.file_checks.values()))

    if reward is not None:
        passed = reward == 1.0
        reason = "" if passed else _failed_reason(reward, facts)
        return Outcome("passed" if passed else "failed", reward, reason, _unique(labels))

    own = [label for label in _unique(labels) if label in OWN_ENDS or label in LABEL_OF_EXCEPTION.values()]
    if own:
        return Outcome("failed", 0.0, f"no reward: {', '.join(own)}", _unique(labels))
    if complaint or facts.exception_type is None or facts.exception_type in VERIFIER_WROTE_NOTHING:
        return Outcome("unscored", None, _no_reward_reason(complaint, facts), _unique(labels))
    labels.append("no_reward")
    return Outcome("failed", 0.0, f"no reward: {_exception(facts)}", _unique(labels))


def proved_cause(facts: Facts) -> str | None:
    """What is proved from the host's side to have ended the trial, or to have kept it from being judged."""
    if facts.fault is not None:
        return f"{facts.fault.kind}: {facts.fault.reason}"
    if facts.cancelled or facts.exception_type == "CancelledError":
        return "cut off: cancelled"
    if facts.exception_type == "HealthcheckError" and not facts.set_up_after_control:
        return facts.exception_message or "the infrastructure failed"
    if not facts.agents_had_control:
        return f"never started: {_exception(facts)}" if facts.exception_type else "never started"
    if facts.never_played and facts.exception_type and facts.rewards is not None:
        # The verifier ran, so the environment was still there: it isn't the agents who kept the step from them.
        return f"never played: {_exception(facts)}"
    return None


def _reward(rewards: Mapping[str, float] | None) -> tuple[float | None, str]:
    """The reward to judge by (key `reward`, or the only key), or None and what is wrong with what there is."""
    if rewards is None:
        return None, ""
    if "reward" in rewards:
        value: Any = rewards["reward"]
    elif len(rewards) == 1:
        (value,) = rewards.values()
    else:
        return None, f"{len(rewards)} rewards, none of them named `reward`"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"the reward is {value!r}, not a finite number"
    if isinstance(value, float) and not math.isfinite(value):
        return None, f"the reward is {value!r}, not a finite number"
    if not 0 <= value <= 1:
        return None, f"{OUT_OF_RANGE}: {value!r}"
    return float(value), ""


def _tampered(facts: Facts, reward: float | None) -> bool:
    """The verifier's verdict on the evidence isn't the host's, or the reward contradicts one of the two verdicts.

    A reward of 1 is for a task of which all holds, of the evidence and of the files.
    """
    assert facts.host_checks is not None
    if facts.verifier_checks is not None and dict(facts.verifier_checks) != dict(facts.host_checks):
        return True
    held = (*facts.host_checks.values(), *(facts.file_checks or {}).values())
    return reward == 1.0 and not all(held)


def _failed_reason(reward: float, facts: Facts) -> str:
    """What the verifier says of the evidence counts for nothing, but where the host has no verdict it is a reason."""
    of_evidence = facts.verifier_checks if facts.host_checks is None else None
    for part, checks in (("evidence", of_evidence), ("files", facts.file_checks)):
        if failed := sorted(name for name, held in (checks or {}).items() if not held):
            return f"{part}: {', '.join(failed)}"
    return f"reward {reward:g}"


def _no_reward_reason(complaint: str, facts: Facts) -> str:
    what = complaint or "the verifier wrote no reward"
    if facts.reward_file and facts.exception_type in UNREADABLE:
        what = f"the verifier's {facts.reward_file}, which is no finite number"
    tail = " | ".join(line.strip() for line in facts.verifier_tail.strip().splitlines()[-3:])
    return f"{what}; its last lines: {tail}" if tail else what


def _exception(facts: Facts) -> str:
    if failed := COMPOSE_FAILED.search(facts.exception_message):
        return f"docker compose ended with {failed[1]}: {failed[2].rstrip().rpartition('\n')[2].strip()}"
    first_line = facts.exception_message.strip().splitlines()[0] if facts.exception_message.strip() else ""
    return f"{facts.exception_type}: {first_line}" if first_line else f"{facts.exception_type}"


def _unique(labels: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(labels))


def facts_from(result: Any, *, checks: Any = None) -> Facts:
    """Facts from a trial's parsed result.json and checks.json. What is missing or of another shape counts as absent.

    `result` may be one step's of a trial, too, which has the same fields (`bench/scoring/stepoutcomes.py`).
    """
    told = _mapping(dig(result, "agent_result", "metadata", "buzzbench"))
    exception = _mapping(dig(result, "exception_info"))
    exception_type = exception.get("exception_type")
    fault = _mapping(told.get("fault"))
    rewards = dig(result, "verifier_result", "rewards")
    return Facts(
        exception_type=exception_type if isinstance(exception_type, str) else None,
        exception_message=str(exception.get("exception_message") or ""),
        rewards=rewards if isinstance(rewards, dict) and rewards else None,
        fault=Fault(str(fault.get("kind")), str(fault.get("reason"))) if fault else None,
        labels=_labels(told),
        agents_had_control=_had_control(result, told),
        cancelled=exception_type == "CancelledError",
        verifier_checks=_checks(dig(checks, "evidence")),
        file_checks=_checks(dig(checks, "files")),
        ended_because=str(told.get("reason") or ""),
    )


def _labels(told: Mapping[str, Any]) -> tuple[str, ...]:
    given = told.get("labels")
    return _unique([str(label) for label in given]) if isinstance(given, list) else ()


def _had_control(result: Any, told: Mapping[str, Any]) -> bool:
    """Ours says so by the timing of the step `post`; of another agent, that Harbor ran it at all."""
    if told:
        return "post" in _mapping(told.get("timings"))
    return bool(dig(result, "agent_execution", "started_at"))


def _checks(value: Any) -> Mapping[str, bool] | None:
    if not isinstance(value, dict) or not all(isinstance(held, bool) for held in value.values()):
        return None
    return {str(name): held for name, held in value.items()}


def dig(value: Any, *path: str) -> Any:
    """What is at that place of parsed JSON; None where it is not there, or something else is on the way."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
