"""Random streams of lanes, all derived from one integer seed.

A seed has three roots: one for the instance, one for the tape, one for the random choices of
policies. The k-th episode since the seed draws from (root, k), independently of earlier episodes.
Kernels use xoshiro256++ (Blackman and Vigna, 2021). Its state is a tuple of four words that every
draw takes and returns, so that it stays in registers; between draws of blocks it is stored in an
array. Initial states come from splitmix64 (Steele, Lea and Flood, 2014), as its authors advise.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, inlined

UintArray: TypeAlias = NDArray[np.uint64]
Stream: TypeAlias = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
PageSets: TypeAlias = Literal["any", "train", "test"]
"""Names of the streams of seeds: of the general one, and of those of training and of tests."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
UNIT = 2.0**-53


class Roots(NamedTuple):
    """The three numbers that start a seed's streams of instances, tapes and policies."""

    instance: int
    tape: int
    rng: int


def roots(seed: int, pages: PageSets = "any") -> Roots:
    """Return the roots of the three random streams of an integer ``seed`` >= 0.

    Those of ``train`` are even, those of ``test`` odd, so that no seeds have a root in common.
    """
    number = get_args(PageSets).index(pages)
    sequence = np.random.SeedSequence(seed, spawn_key=(number,) if number else ())
    words = [int(word) for word in sequence.generate_state(3, np.uint64)]
    return Roots(*(word - word % 2 + number - 1 if number else word for word in words))


def generator(root: int, episode: int) -> np.random.Generator:
    """Return a new NumPy generator for episode ``episode`` of the stream with a given root."""
    return np.random.default_rng((root, episode))


@compiled(forceinline=True)
def mixed(word: np.uint64) -> np.uint64:
    """Return the 64-bit hash of a word by the finaliser of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * MIX_1
    word = (word ^ (word >> np.uint64(27))) * MIX_2
    hashed: np.uint64 = word ^ (word >> np.uint64(31))
    return hashed


@inlined()
def stream_of(root: np.uint64, episode: np.uint64) -> Stream:
    """Return the first state, four words, of the random stream of an episode and a root."""
    word = mixed(root + GOLDEN * (episode + np.uint64(1)))
    return (
        mixed(word + GOLDEN),
        mixed(word + GOLDEN * np.uint64(2)),
        mixed(word + GOLDEN * np.uint64(3)),
        mixed(word + GOLDEN * np.uint64(4)),
    )


@inlined(forceinline=True)
def loaded(words: UintArray) -> Stream:
    """Return the random stream whose state is stored in an array of four words."""
    return words[0], words[1], words[2], words[3]


@inlined(forceinline=True)
def store(stream: Stream, words: UintArray) -> None:
    """Write the state of a random stream into an array of four words."""
    words[0], words[1], words[2], words[3] = stream


@compiled()
def rewind(words: UintArray, root: np.uint64, episode: np.uint64) -> None:
    """Write the first state of the stream of a root and an episode into an array of four words."""
    store(stream_of(root, episode), words)


@inlined(forceinline=True)
def rotated(word: np.uint64, bits: int) -> np.uint64:
    """Return a 64-bit word whose bits are rotated to the left by ``bits`` places."""
    turned: np.uint64 = (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))
    return turned


@inlined(forceinline=True)
def next_word(stream: Stream) -> tuple[np.uint64, Stream]:
    """Draw 64 random bits by xoshiro256++; return them and the stream after the draw."""
    s0, s1, s2, s3 = stream
    word = rotated(s0 + s3, 23) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    return word, (s0 ^ s3, s1 ^ s2, s2 ^ shifted, rotated(s3, 45))


@inlined(forceinline=True)
def uniform_of(bits: int) -> float:
    """Turn 53 random bits into a number in (0, 1], a multiple of 2**-53."""
    return (float(bits) + 1.0) * UNIT


@inlined(forceinline=True)
def next_uniform(stream: Stream) -> tuple[float, Stream]:
    """Draw a uniform number in (0, 1], a multiple of 2**-53; return it and the stream after it."""
    word, stream = next_word(stream)
    return uniform_of(int(word >> np.uint64(11))), stream


@inlined(forceinline=True)
def draw_uniform(words: UintArray) -> float:
    """Draw a number in (0, 1] from the stream in an array of four words, and advance it."""
    uniform, stream = next_uniform(loaded(words))
    store(stream, words)
    return float(uniform)
