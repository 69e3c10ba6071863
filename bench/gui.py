"""`inv gui`: the Buzz desktop app as the benchmark user."""

from __future__ import annotations

from bench.errors import MachineLacks


def gui() -> None:
    """Raise MachineLacks with what it needs: the app runs on the compose stack, which this version doesn't have yet."""
    raise MachineLacks.of(
        "gui",
        "it needs the compose stack, a Buzz checkout, pnpm and Rust; this version has only the embedded stack",
        "follow a run in its job directory (relay_evidence.json, trajectory.json) or with `harbor view jobs`",
    )
