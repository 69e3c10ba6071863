"""What a real agent is told of itself, its team and how to speak to it."""

from __future__ import annotations

from bench.harness.buzz.prompt import system
from bench.harness.directory import Channel
from tests.harness.buzz.agents import agent

PEOPLE = {"user": "aa" * 32, "orch": "bb" * 32, "worker-1": "cc" * 32}
TEAM = (agent("orch", "orchestrator", role="lead"), agent("worker-1"))
CHANNEL = Channel("c0-1", "buzz/task", "user")


def told(who: int, **more: object) -> str:
    changed = agent(TEAM[who].name, TEAM[who].kind, **more)
    return system(changed, TEAM, CHANNEL, PEOPLE, user="user", workdir="/app")


def test_everybody_knows_the_roster_with_keys_the_channel_the_user_and_the_workspace() -> None:
    text = told(1)
    assert f"You are worker-1 (worker, helper), public key {PEOPLE['worker-1']}." in text
    assert f"channel is buzz/task, id c0-1. The user is user, public key {PEOPLE['user']}." in text
    assert f"| orch | orchestrator, lead | {PEOPLE['orch']} |" in text
    assert f"| worker-1 (you) | worker, helper | {PEOPLE['worker-1']} |" in text
    assert "buzz messages send --channel c0-1" in text
    assert "one workspace (/app)" in text


def test_prompt_persona_and_skills_come_first_in_their_order() -> None:
    text = told(1, prompt="PROMPT", persona="PERSONA", skills=("SKILL A", "SKILL B"))
    places = [text.index(part) for part in ("PROMPT", "PERSONA", "SKILL A", "SKILL B", "[Situation]")]
    assert places == sorted(places)


def test_the_tasks_skills_come_after_the_conditions_own() -> None:
    changed = agent(TEAM[1].name, TEAM[1].kind, skills=("SKILL A",))
    text = system(changed, TEAM, CHANNEL, PEOPLE, user="user", workdir=None, task_skills="[Skills]\nof the task")
    places = [text.index(part) for part in ("SKILL A", "[Skills]\nof the task", "[Situation]")]
    assert places == sorted(places)


def test_only_the_orchestrator_is_told_to_end_the_work() -> None:
    assert "send one message that begins with `DONE:`" in told(0)
    assert "send one message that begins with `DONE:`" not in told(1)
    assert "Only orch ends the work" in told(1)
