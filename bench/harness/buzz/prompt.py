"""What a real agent is told in its system prompt file: the condition's own texts, then who is where. Pure.

Buzz's own guide to the `buzz` command comes before it (BUZZ.md section 4), unless the manifest leaves that out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.condition import Agent
from bench.harness.directory import Channel

NUDGE = (
    "The whole team is idle: nobody has been mentioned, and the task isn't finished. What you wrote without sending "
    "it has reached nobody. Go on: mention whoever is to act, or send your message that begins with `DONE:` if all is "
    "in place."
)
"""The user's one reminder to the orchestrator of a team that fell silent (public case 27)."""


def system(
    agent: Agent,
    team: Sequence[Agent],
    channel: Channel,
    people: Mapping[str, str],
    *,
    user: str,
    workdir: str | None,
    task_skills: str = "",
) -> str:
    """The text of one agent's file. `people` are all public keys by name, the user's among them."""
    situation = _situation(agent, team, channel, people, user, workdir)
    parts = [agent.prompt, agent.persona or "", *agent.skills, task_skills, situation]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _situation(
    agent: Agent,
    team: Sequence[Agent],
    channel: Channel,
    people: Mapping[str, str],
    user: str,
    workdir: str | None,
) -> str:
    orchestrator = next(a.name for a in team if a.kind == "orchestrator")
    rows = [
        f"| {a.name}{' (you)' if a.name == agent.name else ''} | {a.kind}, {a.role} | {people[a.name]} |" for a in team
    ]
    lines = [
        "[Situation]",
        f"You are {agent.name} ({agent.kind}, {agent.role}), public key {people[agent.name]}.",
        f"Your team's Buzz channel is {channel.name}, id {channel.id}. The user is {user}, public key {people[user]}.",
        "",
        "| name | role | public key |",
        "|---|---|---|",
        *rows,
        "",
        "Only a mention wakes an agent. Send a message with",
        f"`buzz messages send --channel {channel.id} --content TEXT --mention PUBLIC_KEY`, `--mention` once for each",
        "whom you mean; `--reply-to EVENT_ID` answers in a thread. A text that begins with `-` needs `--content=TEXT`.",
        "A member's name after an `@` in a text mentions it, too; with `--mention` any other `@word` is only text.",
        "What you write without sending it reaches nobody. A mention that comes while you work is shown to you next.",
        f"All agents share one workspace{f' ({workdir})' if workdir else ''}.",
    ]
    if agent.kind == "orchestrator":
        lines.append(
            "When the whole task is finished, and only then, send one message that begins with `DONE:`: it ends the "
            "work for everyone."
        )
    else:
        lines.append(f"Only {orchestrator} ends the work. Report to whoever gave you a task, with a mention.")
    return "\n".join(lines)
