"""Signatures for the stand-ins, in plain Python: BIP-340 over secp256k1, NIP-01, NIP-42, NIP-98. For tests alone."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
import uuid

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def _double(p):
    x, y, z = p
    s = 4 * x * y * y % P
    m = 3 * x * x % P
    x3 = (m * m - 2 * s) % P
    return x3, (m * (s - x3) - 8 * pow(y, 4, P)) % P, 2 * y * z % P


def _add(p, q):
    if p is None:
        return (*q, 1)
    x1, y1, z1 = p
    zz = z1 * z1 % P
    u, s = q[0] * zz % P, q[1] * zz * z1 % P
    if u == x1:
        return _double(p) if s == y1 else None
    h, r = u - x1, s - y1
    hh = h * h % P
    hhh, v = h * hh % P, x1 * hh % P
    x3 = (r * r - hhh - 2 * v) % P
    return x3, (r * (v - x3) - y1 * hhh) % P, z1 * h % P


def _times(k, point=G):
    found = None
    for bit in bin(k)[2:]:
        found = _double(found) if found else None
        if bit == "1":
            found = _add(found, point)
    x, y, z = found
    inverse = pow(z, -1, P)
    return x * inverse * inverse % P, y * inverse**3 % P


def _tagged(tag, data):
    head = hashlib.sha256(tag.encode()).digest()
    return hashlib.sha256(head + head + data).digest()


LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def npub(public):
    """A public key in bech32 (NIP-19)."""
    number = int(public, 16) << 4  # 256 bits, padded to 52 groups of 5
    data = [number >> 5 * place & 31 for place in reversed(range(52))]
    check = 1
    for value in [3, 3, 3, 3, 0, 14, 16, 21, 2, *data, 0, 0, 0, 0, 0, 0]:  # "npub", its high bits first
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, part in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= part if top >> bit & 1 else 0
    check ^= 1
    return "npub1" + "".join(LETTERS[value] for value in [*data, *(check >> 5 * (5 - i) & 31 for i in range(6))])


class Key:
    def __init__(self, secret):
        self.secret = secret
        number = int(secret, 16)
        x, y = _times(number)
        self._number = number if y % 2 == 0 else N - number
        self._x = x.to_bytes(32, "big")
        self.public = self._x.hex()

    def _sign(self, digest):
        noise = int.from_bytes(_tagged("BIP0340/aux", os.urandom(32)), "big")
        t = (self._number ^ noise).to_bytes(32, "big")
        k = int.from_bytes(_tagged("BIP0340/nonce", t + self._x + digest), "big") % N
        rx, ry = _times(k)
        k = k if ry % 2 == 0 else N - k
        r = rx.to_bytes(32, "big")
        e = int.from_bytes(_tagged("BIP0340/challenge", r + self._x + digest), "big") % N
        return (r + ((k + e * self._number) % N).to_bytes(32, "big")).hex()

    def event(self, kind, content="", tags=()):
        body = [0, self.public, int(time.time()), kind, [list(tag) for tag in tags], content]
        digest = hashlib.sha256(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()).digest()
        return {
            "id": digest.hex(),
            "pubkey": self.public,
            "created_at": body[2],
            "kind": kind,
            "tags": body[4],
            "content": content,
            "sig": self._sign(digest),
        }

    def shared_x(self, public):
        """What this key and the owner of a public key both can compute, 32 bytes."""
        x = int(public, 16)
        y = pow(x**3 + 7, (P + 1) // 4, P)
        return _times(self._number, (x, y))[0].to_bytes(32, "big")

    def authorization(self, url, body):
        tags = [
            ["u", url],
            ["method", "POST"],
            ["nonce", str(uuid.uuid4())],
            ["payload", hashlib.sha256(body).hexdigest()],
        ]
        event = json.dumps(self.event(27235, "", tags), separators=(",", ":"))
        return "Nostr " + base64.b64encode(event.encode()).decode()
