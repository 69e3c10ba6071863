"""File descriptors that programs are handed. Light: a plan loads this."""

from __future__ import annotations

import os


def memory_file(content: str) -> int:
    """A descriptor from which `content` can be read, and that no file system knows."""
    descriptor = os.memfd_create("sandbox")
    os.write(descriptor, content.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def close(*descriptors: int) -> None:
    """Close them all. Each has one owner: a number closed twice might by then be somebody else's."""
    for descriptor in descriptors:
        os.close(descriptor)
