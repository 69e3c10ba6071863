"""What a model is told: who it is and where, and each message as a block. Pure.

The block has the form in which Buzz's own harness shows a mention (BUZZ.md section 4; ARCHITECTURE, "Scripts").
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.condition import Agent
from bench.harness.directory import Directory
from bench.harness.events import thread_of
from bench.nostr import Event, tag_value

MENTION, MESSAGE = "@mention", "message"

NUDGE = (
    "[Notice] The whole team is idle: nobody has been mentioned, and the task isn't finished. What you wrote without "
    "send_message or done has reached nobody. Go on: mention whoever is to act, or call `done` if all is in place."
)
"""Said once in a trial to the orchestrator of a team that fell silent (public case 27)."""


def system(
    agent: Agent, team: Sequence[Agent], directory: Directory, *, user: str, workdir: str | None, task_skills: str = ""
) -> str:
    """The system prompt: the condition's own texts, then what the task and this trial add to them."""
    situation = _situation(agent, team, directory, user, workdir)
    parts = [agent.prompt, agent.persona or "", *agent.skills, task_skills, situation]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _situation(agent: Agent, team: Sequence[Agent], directory: Directory, user: str, workdir: str | None) -> str:
    rows = [f"- {a.name}: {a.kind}, {a.role}{' (you)' if a.name == agent.name else ''}" for a in team]
    orchestrator = next(a.name for a in team if a.kind == "orchestrator")
    lines = [
        "[Situation]",
        f"You are {agent.name} ({agent.kind}, {agent.role}) in the Buzz channel {directory.title(directory.main.id)}.",
        f"The user is {user}. The team:",
        *rows,
        "Only a mention wakes an agent: name it in `mention` of send_message. `@name` in a text is only text.",
        "What you write without send_message reaches nobody. A mention that comes while you work is shown to you next.",
        f"All agents share one workspace{f' ({workdir})' if workdir else ''}, in which `shell` runs its commands.",
    ]
    if agent.kind == "orchestrator":
        lines.append("When the whole task is finished, and only then, call `done` once: it ends the work for everyone.")
    else:
        lines.append(f"Only {orchestrator} ends the work. Report to whoever gave you a task, with a mention.")
    return "\n".join(lines)


def mentions(events: Sequence[Event], directory: Directory) -> str:
    """One prompt for mentions that have arrived, in their order."""
    return "\n\n".join(block(event, directory, MENTION) for event in events)


def block(event: Event, directory: Directory, label: str = MESSAGE) -> str:
    """One message as the model sees it."""
    root, parent = thread_of(event)
    lines = [
        f"[Buzz event: {label}]",
        f"Event ID: {event['id']}",
        f"Channel: {directory.title(tag_value(event, 'h'))}",
        f"From: {directory.name(event['pubkey'])}",
    ]
    if parent is not None:
        lines.append(f"Thread: root {root}, reply to {parent}")
    return "\n".join([*lines, f"Content: {event['content']}"])
