"""A judge's source and evidence in, its checks out: all that is run of a task's own code.

Standard library only, and no newer Python than a task may meet: a sandbox is handed this very text (`judge.py`).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


class Misjudged(Exception):
    """The judge gave no verdict; the text says why."""


def checks(source: bytes, path: str, evidence: dict[str, Any]) -> dict[str, bool]:
    """What the judge says of the evidence: {check: holds}. Raises Misjudged.

    The source is run in a namespace of its own: no search path is changed, no bytecode written.
    """
    namespace: dict[str, Any] = {"__name__": "judge", "__file__": path}
    try:
        exec(compile(source, path, "exec"), namespace)  # noqa: S102  # whose source, and where: see `bench/scoring/judge.py`
    except (Exception, SystemExit) as error:
        raise Misjudged(f"it can't be loaded ({_described(error)})") from error
    judge = namespace.get("judge")
    if not callable(judge):
        raise Misjudged("it has no function judge(evidence)")
    try:
        given = judge(evidence)
    except (Exception, SystemExit) as error:
        raise Misjudged(f"judge(evidence) raised {_described(error)}") from error
    return checked(given)


def checked(given: object) -> dict[str, bool]:
    """The checks that a judge gave, if such they are. Raises Misjudged."""
    if not isinstance(given, dict) or not given:
        raise Misjudged("judge(evidence) gave no checks: it must return {name: bool} with at least one")
    for name, holds in given.items():
        if not isinstance(name, str) or not isinstance(holds, bool):
            raise Misjudged(f"judge(evidence) gave {name!r}: {holds!r}, not a name and a bool")
    return given


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def main() -> None:
    """`{"source": Latin-1 for bytes, "evidence"}` on standard input, `{"checks"}` or `{"misjudged"}` on the output."""
    # What the judge prints is none of the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    given = json.load(sys.stdin)
    try:
        told: dict[str, Any] = {"checks": checks(given["source"].encode("latin-1"), "judge.py", given["evidence"])}
    except Misjudged as error:
        told = {"misjudged": str(error)}
    with answer:
        json.dump(told, answer)


if __name__ == "__main__":
    main()
