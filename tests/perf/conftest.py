"""The relay that the load driver is tested on is the relay's own fixture."""

from tests.relay.conftest import module_database, relay

__all__ = ["module_database", "relay"]
