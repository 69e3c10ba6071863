"""The Ed25519 key by which this installation signs packs: made on first use, kept in the state directory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import InvalidInput
from bench.faults import shown
from bench.files import locked, make_private_directory, write_private

if TYPE_CHECKING:
    from nacl.signing import SigningKey

FILE_NAME = "signing.key"
SEED = re.compile(r"[0-9a-f]{64}")
DAMAGED = "restore it from a backup, or delete it to sign with a new one"


def ensure(state_dir: Path) -> SigningKey:
    """The key; two processes at once get the same. Raises InvalidInput where its file is damaged."""
    from nacl.signing import SigningKey

    make_private_directory(state_dir)
    path = state_dir / FILE_NAME
    with locked(state_dir / "state.lock"):
        if not path.exists():
            write_private(path, SigningKey.generate().encode().hex() + "\n")
    return SigningKey(bytes.fromhex(seed(state_dir)))


def public(key: SigningKey) -> str:
    """The public half, in hex: what a pack is checked with."""
    return key.verify_key.encode().hex()


def seed(state_dir: Path) -> str:
    """What the file holds, in hex; empty where there is none yet. Raises InvalidInput where it is damaged."""
    path = state_dir / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InvalidInput.of(shown(path), f"can't be read: {error.strerror}", DAMAGED) from None
    if not SEED.fullmatch(text):
        raise InvalidInput.of(shown(path), "damaged: not 64 hex digits", DAMAGED)
    return text
