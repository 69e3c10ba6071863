"""The user of a trial answers what the task has answers for: in the question's thread, waking whoever asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bench.useranswers import TIMES

USER = 'answers:\n  - asked: ["berth"]\n    answer: "Take berth 9."\n'

ASKS = """
orch:
  - name: ask
    expect: ["make the file"]
    do:
      - send: {mention: ["{{user}}"], text: "Which BERTH, please?"}
  - name: finish
    expect: ["Take berth 9."]
    do:
      - done: "berth 9"
"""

ASKS_TOO_OFTEN = """
orch:
  - name: ask without end
    expect: ["make the file"]
    do:
%s
      - send: {mention: ["{{user}}"], text: "Nobody has an answer to this."}
      - send: {text: "Which berth? I mention nobody."}
      - send: {mention: ["{{user}}"], text: "Well, then?"}
  - name: finish
    expect: ["Take berth 9."]
    do:
      - run: "true"
  - name: say so
    on: result
    do:
      - done: "berth 9, as the user says"
"""


async def test_a_question_is_answered_in_its_thread_and_that_taints_nothing(bench: Any) -> None:
    task = bench.task("asks", ASKS)
    (task / "user.yaml").write_text(USER)
    trial = bench.trial(task)
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", [])
    _, question, answer, done = trial.evidence["messages"]
    assert (question["author"], question["mentions"]) == ("orch", ["user"])
    assert (answer["author"], answer["text"]) == ("user", "Take berth 9.")
    assert (answer["mentions"], answer["parent"]) == (["orch"], question["id"])
    assert done["mentions"] == ["user"], "DONE: mentions the user as well, and is no question"


async def test_nothing_else_is_answered_and_no_answer_is_given_for_ever(bench: Any) -> None:
    asks = "\n".join(f'      - send: {{mention: ["{{{{user}}}}"], text: "Which berth? {n}"}}' for n in range(TIMES + 2))
    task = bench.task("asks-too-often", ASKS_TOO_OFTEN % asks)
    (task / "user.yaml").write_text(USER)
    trial = bench.trial(task)
    async with asyncio.timeout(30):
        await trial.run()
    by_user = [m for m in trial.evidence["messages"] if m["author"] == "user"]
    assert [m["text"] for m in by_user[1:]] == ["Take berth 9."] * TIMES
    asked = [m for m in trial.evidence["messages"] if m["text"].startswith("Which berth? ") and m["mentions"]]
    assert [m["parent"] for m in by_user[1:]] == [m["id"] for m in asked[:TIMES]]
    assert "tainted" not in trial.facts["labels"]


async def test_without_answers_the_user_says_nothing(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.trial.team.QUIET_S", 0.2)
    monkeypatch.setattr("bench.trial.team.LOOK_S", 0.02)
    trial = bench.trial(bench.task("asks-nobody", ASKS))
    await trial.run()
    assert trial.facts["ended"] == "loop"
    assert [m["author"] for m in trial.evidence["messages"]] == ["user", "orch"]
