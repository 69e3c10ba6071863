"""What buzz-acp shows an agent of messages: context, thread, and the messages themselves (BUZZ.md section 4)."""

from __future__ import annotations

import datetime
import json

from nostr import npub


class Shown:
    """Messages of one channel as text. `profiles` are events of kind 0 by public key."""

    def __init__(self, channel, name, profiles):
        self.channel = f"{name} (#{channel})" if name else channel
        self.profiles = profiles

    def prompt(self, batch, thread):
        """The sections of a prompt: the last event's context, its thread, all events."""
        context, sections = thread_of(batch[-1]), []
        anchor = (context["root"] or batch[-1]["id"]) if self._is_for_people(batch[-1]) else None
        lines = ["[Context]", f"Scope: {'thread' if context['root'] else 'channel'}", f"Channel: {self.channel}"]
        if context["root"]:
            lines.append(f"Thread root: {context['root']}")
            if context["parent"] != context["root"]:
                lines.append(f"Parent: {context['parent']}")
            lines.append("The thread is below; `buzz messages thread --channel <UUID> --event <ID>` has all of it.")
        else:
            lines.append("Hint: `buzz messages get --channel <UUID>` has what was said before.")
        if anchor:
            lines.append(f"IMPORTANT: answer with `--reply-to {anchor}`.")
        sections.append("\n".join(lines))
        if thread:
            sections.append(
                "\n".join([f"[Thread Context ({len(thread)} of {len(thread)} messages)]", *self._lines(thread)])
            )
        if len(batch) == 1:
            sections.append("[Buzz event: @mention]\n" + self._event(batch[0]))
        else:
            parts = [
                f"--- Event {number} (@mention) ---\n{self._event(event)}" for number, event in enumerate(batch, 1)
            ]
            sections.append("\n\n".join([f"[Buzz events \N{EM DASH} {len(batch)} events]", *parts]))
        return sections

    def _lines(self, thread):
        for number, event in enumerate(thread, 1):
            yield f"[{number}] {self._actor(event['pubkey'])} ({iso(event)}): {event['content']}"

    def _event(self, event):
        public, context = event["pubkey"], thread_of(event)
        name = self._name(public)
        parsed = [f"{word}={context[word]}" for word in ("parent", "root") if context[word]]
        if mentions := [self._actor(tag[1]) for tag in event["tags"] if tag[0] == "p"]:
            parsed.append(f"mentions=[{', '.join(mentions)}]")
        lines = [
            f"Event ID: {event['id']}",
            f"Channel: {self.channel}",
            f"Kind: {event['kind']}",
            f"From: {name} (npub: {npub(public)}, hex: {public})" if name else f"From: {npub(public)} (hex: {public})",
            f"Time: {iso(event)}",
            f"Content: {event['content']}",
            f"Tags: {json.dumps(event['tags'], separators=(',', ':'), ensure_ascii=False)}",
            *([f"Parsed: {', '.join(parsed)}"] if parsed else []),
        ]
        return "\n".join(lines)

    def _actor(self, public):
        name = self._name(public)
        return f"{name} ({public})" if name else public

    def _name(self, public):
        return json.loads(self.profiles[public]["content"]).get("display_name") if public in self.profiles else None

    def _is_for_people(self, event):
        """Whether somebody without an attestation wrote it or is mentioned: such answers are kept to one thread."""
        mentioned = [tag[1] for tag in event["tags"] if tag[0] == "p"]
        return any(not self._is_agent(public) for public in [event["pubkey"], *mentioned])

    def _is_agent(self, public):
        return public in self.profiles and any(tag[0] == "auth" for tag in self.profiles[public]["tags"])


def thread_of(event):
    """The thread that an event is in: {"root", "parent"}, None where it is in none."""
    marked = {tag[3]: tag[1] for tag in event["tags"] if tag[0] == "e" and len(tag) > 3}
    root, reply = marked.get("root"), marked.get("reply")
    return {"root": root or reply, "parent": reply or root}


def iso(event):
    return datetime.datetime.fromtimestamp(event["created_at"], datetime.UTC).isoformat()
