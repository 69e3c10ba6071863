"""What a sandbox shows: the host's `/usr` read-only, a short list from `/etc`, and nothing else of the host.

Everything else is the sandbox's own and lives in memory: `/app`, `/tmp`, `/root`, `/run`, `/var`, `/home`, `/dev`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRON = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "HOSTNAME": "sandbox"}
"""What every command starts with; nothing of the driver's own environment is handed on."""

DEFAULT_WORKDIR = "/app"

READ_ONLY = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""The host's programs. Nothing below them can be written, so a task that wants to is refused by name."""

_ETC = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust/extracted"),
    *("mime.types", "services", "protocols", "bash.bashrc", "fonts", "java-*"),
)
_ETC_NETWORK = ("resolv.conf", "host.conf", "gai.conf")

# The sandbox's own: the host's users, groups and names are nobody's business in there.
_FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/hostname": "sandbox\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
}
_DIRECTORIES = {
    **dict.fromkeys(("/tmp", "/var/tmp"), 0o1777),  # noqa: S108 - inside, nobody else is there
    "/root": 0o700,
    **dict.fromkeys(("/app", "/home", "/mnt", "/opt", "/run", "/srv"), 0o755),
    **dict.fromkeys(("/var/cache", "/var/lib", "/var/log", "/var/run", "/tests", "/solution"), 0o755),
}
# Made before anything is mounted below them: bubblewrap's own would be for root only.
_PARENTS = ("/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/pki/ca-trust", "/var", "/logs")


@dataclass(frozen=True)
class Layout:
    """What one sandbox shows beyond the fixed part. `shared` are directories that anybody inside may write (0777)."""

    network: bool = False
    """True shares the host's network; False gives a network namespace of its own, with nothing but loopback."""
    directories: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def files(self) -> dict[str, str]:
        """Small files to write into it: path → text."""
        return _FILES

    def arguments(self) -> list[str]:
        """bubblewrap's arguments for namespaces, mounts and directories; `files` come on top."""
        made = {**_DIRECTORIES, **dict.fromkeys(self.shared, 0o777)}
        for path in self.directories:
            made.setdefault(path, 0o755)
        return [
            *("--unshare-user", "--uid", "0", "--gid", "0"),
            *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "sandbox"),
            *(() if self.network else ("--unshare-net",)),
            *("--as-pid-1", "--new-session"),
            *_made(dict.fromkeys(_PARENTS, 0o755)),
            *_shown_programs(),
            *_etc((*_ETC, *_ETC_NETWORK) if self.network else _ETC),
            *("--proc", "/proc", "--dev", "/dev"),
            *_made(made),
            *("--chdir", "/"),
        ]

    def is_directory(self, path: str) -> bool:
        """Whether `path` is a directory from the start, before anything was copied."""
        known = {*_DIRECTORIES, *self.directories, *self.shared, "/", "/etc", "/var"}
        return path in known or any(other.startswith(path + "/") for other in known)


def read_only(path: str) -> bool:
    """Whether a path inside belongs to the host and can't be written."""
    return any(path == top or path.startswith(top + "/") for top in READ_ONLY)


def _made(directories: dict[str, int]) -> Iterable[str]:
    return (word for path, mode in directories.items() for word in ("--perms", f"{mode:04o}", "--dir", path))


def programs() -> list[str]:
    """The directories of the host that are shown read-only, links to them left out."""
    return [path for path in READ_ONLY if Path(path).is_dir() and not Path(path).is_symlink()]


def _shown_programs() -> Iterable[str]:
    for path in programs():
        yield from ("--ro-bind", path, path)
    for link in map(Path, READ_ONLY):
        if link.is_symlink():
            yield from ("--symlink", str(link.readlink()), str(link))


@cache
def _etc(names: tuple[str, ...]) -> tuple[str, ...]:
    found = (path for name in names for path in sorted(Path("/etc").glob(name)))
    return tuple(word for path in found if _for_everybody(path) for word in ("--ro-bind", str(path), str(path)))


def _for_everybody(path: Path) -> bool:
    """Whether any user of the host may read it: what only root or a group may read stays out."""
    try:
        return bool(path.stat().st_mode & 0o004)
    except OSError:  # a dangling link, or hidden from us as well
        return False
