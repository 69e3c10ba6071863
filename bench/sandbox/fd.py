"""File descriptors that programs are handed. Light: a plan loads this."""

from __future__ import annotations

import fcntl
import os

_FIRST_FREE = 10


def memory_file(content: str) -> int:
    """A descriptor from which `content` can be read, and that no file system knows; out of the way of a shell's own."""
    descriptor = out_of_the_way(os.memfd_create("sandbox"))
    os.write(descriptor, content.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def out_of_the_way(descriptor: int) -> int:
    """The same file under a number of two digits, which no shell script redirects: those have one digit (POSIX)."""
    if descriptor >= _FIRST_FREE:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    os.close(descriptor)
    return moved


def close(*descriptors: int) -> None:
    """Close them all. Each has one owner: a number closed twice might by then be somebody else's."""
    for descriptor in descriptors:
        os.close(descriptor)
