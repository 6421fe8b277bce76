"""How is a realistic collection of a million documents generated, quickly and reproducibly?

Real prose is split into spans, and a document is drawn from spans around one position, so documents
have topics, and common words have their natural frequencies. Since a pool of prose has too few
rare words, one word in 25 is replaced by a name, number or id whose rank is drawn from an unbounded
Zipf–Mandelbrot distribution. The number of distinct terms then grows as in real collections (Heaps'
law), and most new terms occur once. `python -m benchmarks.shape` compares the result with real
collections: terms in 0.2 % to 20 % of the documents, which determine the query time, have 76 % of
the postings, compared with 75 % in SciFact and 80 % in passages of TREC DL 2019. But there are
twice as many distinct terms in the first few thousand documents, because the prose is of many
kinds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.sources import paragraphs

BLOCK = 1000
MEAN_WORDS, SPREAD, MIN_WORDS, MAX_WORDS = 156, 0.6, 10, 1500  # lognormal lengths
SPAN_WORDS = 16  # mean; the distribution is geometric
NEIGHBOURHOOD = 2000  # words of the pool: scale of the Laplace distribution around a topic
OFF_TOPIC = 0.25  # share of spans from random positions
RARE, REPEATED = 0.04, 0.4  # share of rare words, and share of those that repeat the last one
EXPONENT, SHIFT = 1.25, 500.0  # rank r is drawn with probability ∝ (r + SHIFT)^-EXPONENT
BEYOND = 2**32
TYPOGRAPHIC = 0.2  # share of documents with non-ASCII quotation marks
_SYLLABLES = [a + b for a in "bdfghjklmnprstvz" for b in "aeiou"][:64]
_ASCII = str.maketrans("“”’", '""\'')


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Prose to draw from. words: (n,), indices into `vocabulary`, an array of strings."""

    words: NDArray[np.int32]
    vocabulary: NDArray[Any]
    fingerprint: str


def load_pool(source: Path | None) -> Pool:
    """Load all prose of `source` (sources.py), end to end."""
    numbers: dict[str, int] = {}
    words: list[int] = []
    for paragraph in paragraphs(source):
        for word in paragraph:
            words.append(numbers.setdefault(word.translate(_ASCII), len(numbers)))
    if len(words) < SPAN_WORDS:
        raise ValueError(f"no prose found in {source or 'this Python'}")
    flat = np.array(words, np.int32)
    digest = hashlib.sha256("\n".join(numbers).encode() + flat.tobytes()).hexdigest()
    return Pool(flat, np.array(list(numbers), object), digest)


def write_text(path: Path, documents: int, seed: int, pool: Pool) -> None:
    """Write `documents` lines of JSON with `id` and `text`; fewer are a prefix of more."""
    scratch = path.with_suffix(".tmp")
    with scratch.open("w", encoding="utf-8") as out:
        for number, text in enumerate(texts(documents, seed, pool)):
            out.write(json.dumps({"id": f"{number:07}", "text": text}, ensure_ascii=False) + "\n")
    scratch.rename(path)


def texts(documents: int, seed: int, pool: Pool) -> Iterator[str]:
    """Generate the texts of `documents` documents, a block at a time."""
    for block in range(-(-documents // BLOCK)):
        of_block = _block(np.random.default_rng([seed, block]), pool)
        yield from of_block[: documents - block * BLOCK]


def _block(random: np.random.Generator, pool: Pool) -> list[str]:
    drawn = random.lognormal(np.log(MEAN_WORDS) - SPREAD**2 / 2, SPREAD, BLOCK)
    lengths = np.clip(drawn, MIN_WORDS, MAX_WORDS).astype(np.int64)
    ends = np.cumsum(lengths)
    words = pool.vocabulary[pool.words[_positions(random, lengths, len(pool.words))]]
    at, ranks = _rare(random, lengths)
    words[at] = [rare_word(rank) for rank in ranks.tolist()]
    flat = words.tolist()
    marked = random.random(BLOCK) < TYPOGRAPHIC
    documents = []
    for end, length, typographic in zip(
        ends.tolist(), lengths.tolist(), marked.tolist(), strict=True
    ):
        text = " ".join(flat[end - length : end])
        documents.append(f"“{text.replace(chr(39), '’')}”" if typographic else text)
    return documents


def _positions(
    random: np.random.Generator, lengths: NDArray[np.int64], pool_words: int
) -> NDArray[np.int64]:
    """Return the position in the pool of each word of all documents, (words,)."""
    total = int(lengths.sum())
    begins = random.random(total) < 1 / SPAN_WORDS
    begins[np.cumsum(lengths) - lengths] = True
    first = np.flatnonzero(begins)
    document = np.repeat(np.arange(len(lengths)), lengths)[first]
    topic = random.integers(pool_words, size=len(lengths))
    near = topic[document] + random.laplace(0, NEIGHBOURHOOD, len(first)).astype(np.int64)
    far = random.integers(pool_words, size=len(first))
    start = np.where(random.random(len(first)) < OFF_TOPIC, far, near)
    span = np.cumsum(begins) - 1
    positions: NDArray[np.int64] = (start[span] + np.arange(total) - first[span]) % pool_words
    return positions


def _rare(
    random: np.random.Generator, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return positions and ranks of the rare words; some repeat within a document."""
    at = np.flatnonzero(random.random(int(lengths.sum())) < RARE)
    document = np.searchsorted(np.cumsum(lengths), at, side="right")
    uniform = 1 - random.random(len(at))
    ranks = SHIFT * (uniform ** (-1 / (EXPONENT - 1)) - 1)
    new = random.random(len(at)) >= REPEATED
    new[1:] |= document[1:] != document[:-1]
    new[:1] = True
    last = np.maximum.accumulate(np.where(new, np.arange(len(at)), 0))
    unique = random.integers(BEYOND, size=len(at))  # beyond this rank, all are distinct
    drawn = np.where(ranks < BEYOND, np.minimum(ranks, BEYOND).astype(np.int64), unique)
    return at, drawn[last]


@lru_cache(maxsize=1 << 18)
def rare_word(rank: int) -> str:
    """Return a number, an id or a name, distinct for each rank."""
    kind = rank % 8
    if kind == 0:
        return str(1000 + rank)
    if kind == 1:
        return f"{chr(97 + rank % 26)}{rank}x"
    letters, remaining = "", rank
    for _ in range(3):
        letters += _SYLLABLES[(remaining * 37 + len(letters)) % 64]
        remaining >>= 6
    while remaining:
        letters += _SYLLABLES[remaining % 64]
        remaining >>= 6
    return letters.capitalize() + "nkmr"[kind % 4]
