"""What a person sees while a job runs."""

from __future__ import annotations

import io

from bench.run.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ended(outcome: str, reason: str = "") -> dict[str, object]:
    return {
        "event": "ended",
        "trial": "a__1",
        "task": "org/alpha",
        "outcome": outcome,
        "reason": reason,
        "seconds": 1.25,
    }


def test_piped_output_is_plain_lines() -> None:
    stream = io.StringIO()
    with Progress("lb-team", None, stream=stream) as progress:
        progress.show({"event": "created", "trials": 2})
        progress.show({"event": "phase", "trial": "a__1", "task": "org/alpha", "phase": "start"})
        progress.show(ended("passed"))
        progress.show(ended("unscored", "cancelled"))
    assert stream.getvalue().splitlines() == [
        "job lb-team: trials",
        "✓ org/alpha  1.2 s",
        "– org/alpha  1.2 s  cancelled",
    ]


def test_a_terminal_has_one_live_line_that_is_gone_at_the_end() -> None:
    stream = Terminal()
    with Progress("lb-team", 2, stream=stream) as progress:
        progress.show({"event": "phase", "trial": "a__1", "task": "org/alpha", "phase": "start"})
        assert stream.getvalue().endswith("0/2 ended, 1 running  0 s")
        progress.show(ended("failed", "reward 0"))
        assert "1/2 ended, 0 running (1 failed)" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_a_stop_is_said_with_its_reason() -> None:
    stream = io.StringIO()
    with Progress("lb-team", 2, stream=stream) as progress:
        progress.show({"event": "stopping", "reason": "the job's cap of $1 is reached"})
    assert stream.getvalue().splitlines()[1:] == [
        "stopping: the job's cap of $1 is reached; trials under way come to their end, no other begins"
    ]
