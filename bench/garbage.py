"""Less work for the garbage collector, where a process imports much.

What it does while modules are imported is a fifth of the CPU time of an `inv bench`, and what it does at the
interpreter's end another fifth; neither frees anything that matters.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 100_000
"""Between two collections of young objects. Python's own 2,000 make hundreds of collections of an import."""


def collect_seldom() -> None:
    """Collect seldom while the process runs, and nothing when it ends. Call it first."""
    gc.set_threshold(ALLOCATIONS)
    # What is frozen, the collection at the interpreter's end passes over. Registered first, it runs last.
    atexit.register(gc.freeze)


@contextmanager
def loading() -> Iterator[None]:
    """Collect nothing inside. What is there at the end is never looked at again: it is modules, and they stay.

    Where Harbor is imported, even one collection in its midst would be a tenth of a small job's CPU time; a service's
    start takes a tenth less, and each later collection has less to look at.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
