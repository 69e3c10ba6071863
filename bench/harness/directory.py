"""Who is who in a trial and which channels it has: names for keys, keys for names. Shared by a trial's agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.nostr import Event


@dataclass
class Channel:
    """A channel of the trial. `creator` and `members` are names; `members` is what the trial's own actions made it."""

    id: str
    name: str
    creator: str
    members: set[str] = field(default_factory=set)


class Directory:
    """Names, channels and the order in which the trial's events arrived."""

    def __init__(self, people: Mapping[str, str], main: Channel) -> None:
        self._public = dict(people)
        self._names = {public: name for name, public in people.items()}
        self.main = main
        self.channels = {main.id: main}
        self.arrived: dict[str, Event] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._public)

    def name(self, public: str) -> str:
        """The name behind a key; a key that nobody here has stays hex."""
        return self._names.get(public, public)

    def public(self, name: str) -> str:
        """The key behind a name, which may begin with `@`. Raises LookupError naming those that there are."""
        found = self._public.get(name.removeprefix("@"))
        if found is None:
            raise LookupError(f"nobody here is called {name!r}; there are {', '.join(self.names)}")
        return found

    def publics(self, names: Iterable[str]) -> list[str]:
        """The keys behind names, each once, in order. Raises LookupError for the first unknown one."""
        return list(dict.fromkeys(self.public(name) for name in names))

    def channel(self, given: str | None) -> Channel:
        """The channel with that id or name (`#` allowed), the trial's own by default. Raises LookupError."""
        if not given:
            return self.main
        wanted = given.removeprefix("#")
        for channel in self.channels.values():
            if wanted in (channel.id, channel.name):
                return channel
        known = ", ".join(f"#{c.name}" for c in self.channels.values())
        raise LookupError(f"there is no channel {given!r}; there are {known}")

    def title(self, channel_id: str | None) -> str:
        """How a channel is shown: `name (#uuid)`."""
        channel = self.channels.get(channel_id or "")
        return f"{channel.name} (#{channel.id})" if channel else f"(#{channel_id})"

    def saw(self, event: Event) -> None:
        """Note an event in its order of arrival."""
        self.arrived.setdefault(event["id"], event)
