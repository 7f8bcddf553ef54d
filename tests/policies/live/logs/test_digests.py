"""Which texts of digests have the same value."""

from __future__ import annotations

import hashlib
from base64 import b32encode

import pytest

from policies.live.logs.observations import NOTHING, canonical

SHA1, OTHER = hashlib.sha1(b"x"), hashlib.sha1(b"y")
IN_BASE32 = b32encode(SHA1.digest()).decode()
SHA256, MD5 = hashlib.sha256(b"x"), hashlib.md5(b"x")
LONG = b32encode(SHA256.digest()).decode()


@pytest.mark.parametrize(
    "texts",
    [
        [f"sha1:{IN_BASE32}", IN_BASE32, f"SHA-1:{IN_BASE32.lower()}", SHA1.hexdigest(),
         f"sha1:{SHA1.hexdigest().upper()}", IN_BASE32.lower()],
        [SHA256.hexdigest(), f"sha256:{SHA256.hexdigest()}", f"sha-256:{LONG}",
         f"sha256:{LONG.rstrip('=')}"],
        [MD5.hexdigest(), MD5.hexdigest().upper(), f"md5:{MD5.hexdigest()}"],
        ['W/"x"', '"x"'],
        ["sha1:aaaa", "aaaa"],
    ],
)  # fmt: skip
def test_same(texts):
    assert len({canonical(text) for text in texts}) == 1


@pytest.mark.parametrize(
    "texts",
    [
        ["Abc", "abc", "ABC", "W/x", "x"],
        ["v:abc", "abc"],
        [IN_BASE32, IN_BASE32.replace("A", "a", 1), b32encode(OTHER.digest()).decode()],
        ["AbcdefghIJKLMNOPabcdefghIJKLMNOP", "aBCDEFGHijklmnopABCDEFGHijklmnop"],
        ['W/"x"', '"X"'],
        ["deadbeef", "DEADBEEF"],
        [LONG, SHA256.hexdigest()],
    ],
)
def test_different(texts):
    assert len({canonical(text) for text in texts}) == len(texts)


def test_digests_of_nothing():
    assert canonical("3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ") in NOTHING
    assert canonical("sha1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709") in NOTHING
    assert canonical("d41d8cd98f00b204e9800998ecf8427e") in NOTHING
    assert canonical(SHA1.hexdigest()) not in NOTHING
