"""NIP-44 version 2, encryption alone, in plain Python (RFC 8439's ChaCha20, RFC 5869's HKDF). For tests alone."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import struct

MASK = 0xFFFFFFFF


def encrypt(shared_x, text):
    """The payload for whoever shares that x coordinate (32 bytes) with us."""
    conversation = hmac.digest(b"nip44-v2", shared_x, hashlib.sha256)
    nonce = os.urandom(32)
    keys = _expand(conversation, nonce, 76)
    data = text.encode()
    padded = struct.pack(">H", len(data)) + data.ljust(_padded(len(data)), b"\0")
    sealed = _chacha20(keys[:32], keys[32:44], padded)
    tag = hmac.digest(keys[44:], nonce + sealed, hashlib.sha256)
    return base64.b64encode(b"\x02" + nonce + sealed + tag).decode()


def _expand(key, info, length):
    out, block, number = b"", b"", 1
    while len(out) < length:
        block = hmac.digest(key, block + info + bytes([number]), hashlib.sha256)
        out, number = out + block, number + 1
    return out[:length]


def _padded(length):
    if length <= 32:
        return 32
    power = 1 << (length - 1).bit_length()
    step = 32 if power <= 256 else power // 8
    return step * ((length - 1) // step + 1)


def _chacha20(key, nonce, data):
    out = bytearray()
    for number in range(0, len(data), 64):
        state = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8L", key), number // 64]
        state += struct.unpack("<3L", nonce)
        block = list(state)
        for _ in range(10):
            for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
                _quarter(block, a, b, c, d)
            for a, b, c, d in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
                _quarter(block, a, b, c, d)
        stream = struct.pack("<16L", *((x + y) & MASK for x, y in zip(block, state, strict=True)))
        out += bytes(x ^ y for x, y in zip(data[number : number + 64], stream, strict=False))
    return bytes(out)


def _quarter(s, a, b, c, d):
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & MASK
        mixed = s[z] ^ s[x]
        s[z] = ((mixed << turn) | (mixed >> (32 - turn))) & MASK
