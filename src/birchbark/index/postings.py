"""How are posting lists read, and how are the best documents of several lists found?

A list is a run of 32-bit words; numbers are packed from the lowest bit of a word upwards.

    up to 128 postings   n | doc bits << 8 | tf bits << 14
                         n gaps, n frequencies - 1
    more                 df | 1 << 31
                         for each block of 128: a table entry of four words
                           last document
                           first word of the block, counted behind the table
                           doc bits | tf bits << 6 | largest frequency << 12
                           length of the shortest document
                         the blocks, each from a new word: gaps, frequencies - 1

A gap is the number of documents between a document and the one before it. Largest frequency and
shortest length bound what a block can add to a score, whatever k1 and b are chosen at query time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from birchbark.index.compiled import compiled
from birchbark.index.packing import BLOCK, ENTRY, LONG, MOST_TF

WINDOW = 8192  # documents whose scores are added up at a time
LOOK_UP = 30  # postings that are read in the time of looking one document up
# columns: what a list adds to the score of its documents (see `best`)
WEIGHT, SATURATION, FLOOR, SLOPE, LIMIT, LEAST = range(6)
# columns: where the reading of a list stands
TABLE, BASE, SIZE, BLOCKS, BLOCK_NOW, LOADED, HELD, NEXT, SCORED = range(9)


@compiled
def frequency(words: Any, at: int) -> int:
    """The number of postings in the list that starts at word `at`."""
    head = np.int64(words[at])
    return head & (LONG - 1) if head & LONG else head & 0xFF


@compiled
def frequencies(words: Any, ats: Any) -> Any:
    """The same for several lists, int64 (lists,)."""
    found = np.empty(len(ats), np.int64)
    for i in range(len(ats)):
        found[i] = frequency(words, ats[i])
    return found


@compiled
def unpack(words: Any, ats: Any, docs: Any, tfs: Any) -> None:
    """Documents and frequencies of the lists at `ats`, end to end, into `docs` and `tfs`."""
    state = np.zeros((1, 9), np.int64)
    room_docs, room_tfs = np.empty((1, BLOCK), np.uint32), np.empty((1, BLOCK), np.uint32)
    place = 0
    for at in ats:
        _begin(words, at, state, 0)
        for block in range(state[0, BLOCKS]):
            state[0, BLOCK_NOW] = block
            _load(words, state, 0, room_docs, room_tfs)
            for i in range(state[0, HELD]):
                docs[place] = room_docs[0, i]
                tfs[place] = room_tfs[0, i]
                place += 1


@compiled
def _numbers(words: Any, bit: int, bits: int, n: int, out: Any) -> None:
    """The n numbers of `bits` bits at position `bit`. Unsigned, which is twice as fast."""
    one, five, low, word_bits = np.uint64(1), np.uint64(5), np.uint64(31), np.uint64(32)
    mask = (one << np.uint64(bits)) - one
    position, step = np.uint64(bit), np.uint64(bits)
    for i in range(n):
        word = position >> five
        pair = np.uint64(words[word]) | np.uint64(words[word + one]) << word_bits
        out[np.uint64(i)] = np.uint32((pair >> (position & low)) & mask)
        position += step


@compiled
def _begin(words: Any, at: int, state: Any, c: int) -> None:
    """Set list c, which starts at word `at`, to its first block."""
    head = np.int64(words[at])
    state[c, SIZE] = frequency(words, at)
    state[c, BLOCKS] = (state[c, SIZE] + BLOCK - 1) // BLOCK if head & LONG else 1
    state[c, TABLE] = at + 1 if head & LONG else -1
    state[c, BASE] = at + 1 + (ENTRY * state[c, BLOCKS] if head & LONG else 0)
    state[c, BLOCK_NOW] = state[c, NEXT] = state[c, SCORED] = 0
    state[c, LOADED] = -1


@compiled
def _load(words: Any, state: Any, c: int, docs: Any, tfs: Any) -> None:
    """Unpack the present block of list c into row c of `docs` and `tfs`, unless it is there."""
    block = state[c, BLOCK_NOW]
    if state[c, LOADED] == block:
        return
    n, before, word = state[c, SIZE], np.uint32(0xFFFFFFFF), state[c, BASE]
    if state[c, TABLE] < 0:
        widths = np.int64(words[word - 1]) >> 8
    else:
        entry = state[c, TABLE] + ENTRY * block
        n = min(n - BLOCK * block, BLOCK)
        word += np.int64(words[entry + 1])
        widths = np.int64(words[entry + 2]) & 0xFFF
        if block:
            before = words[entry - ENTRY]
    doc_bits, tf_bits = widths & 63, widths >> 6
    _numbers(words, word * 32, doc_bits, n, docs[c])
    _numbers(words, word * 32 + n * doc_bits, tf_bits, n, tfs[c])
    for j in range(n):
        i = np.uint64(j)
        before = np.uint32(before + docs[c, i] + np.uint32(1))
        docs[c, i] = before
        tfs[c, i] += np.uint32(1)
    state[c, LOADED], state[c, HELD] = block, n
    state[c, NEXT] = state[c, SCORED] = 0


@compiled
def _share(tf: float, norm: float, factors: Any, grid: float) -> float:
    """Weight · tf / (saturation · tf + norm), rounded to the grid; above 0 if the weight is."""
    weight, saturation, least = factors
    return max((weight * tf / (saturation * tf + norm) + grid) - grid, least)


@compiled
def _score(state: Any, c: int, rows: Any, norms: Any, factors: Any, grid: float) -> None:
    """What list c adds to each document of its loaded block. rows: documents, tfs, room."""
    if state[c, SCORED]:
        return
    docs, tfs, out = rows
    for j in range(state[c, HELD]):
        i = np.uint64(j)
        out[i] = norms[docs[i]]
    for j in range(state[c, HELD]):
        i = np.uint64(j)
        out[i] = _share(np.float64(np.int32(tfs[i])), out[i], factors, grid)
    state[c, SCORED] = 1


@compiled
def _last(words: Any, state: Any, c: int, block: int, docs: Any) -> int:
    """The last document of a block of list c; a list of one block is always loaded."""
    if state[c, TABLE] < 0:
        return np.int64(docs[c, state[c, HELD] - 1])
    return np.int64(words[state[c, TABLE] + ENTRY * block])


@compiled
def _seek(words: Any, state: Any, c: int, document: int, docs: Any) -> bool:
    """Move list c on to the first block that ends at `document` or later; False if none does."""
    block = state[c, BLOCK_NOW]
    while block < state[c, BLOCKS] and _last(words, state, c, block, docs) < document:
        block += 1
    if block != state[c, BLOCK_NOW]:
        state[c, BLOCK_NOW], state[c, NEXT] = block, 0
    return block < state[c, BLOCKS]


@compiled
def _most(words: Any, state: Any, c: int, until: int, rows: Any, terms: Any) -> float:
    """The most that list c adds to a document from its present place on and before `until`."""
    docs, _, shares = rows
    bound = 0.0
    if state[c, BLOCK_NOW] >= state[c, BLOCKS]:
        return bound
    if state[c, TABLE] < 0:
        for i in range(state[c, NEXT], state[c, HELD]):
            if docs[c, i] >= until:
                break
            bound = max(bound, shares[c, i])
        return bound
    for block in range(state[c, BLOCK_NOW], state[c, BLOCKS]):
        entry = state[c, TABLE] + ENTRY * block
        tf = np.float64(np.int64(words[entry + 2]) >> 12)
        norm = terms[c, FLOOR] + terms[c, SLOPE] * np.float64(words[entry + 3])
        most = terms[c, WEIGHT] * tf / (terms[c, SATURATION] * tf + norm)
        bound = max(bound, terms[c, LIMIT] if tf >= MOST_TF else min(most, terms[c, LIMIT]))
        if np.int64(words[entry]) >= until - 1:
            break
    return bound * (1 + 1e-9) + terms[c, LEAST]


@compiled
def _add(words: Any, state: Any, c: int, window: Any, rows: Any, norms: Any, factors: Any) -> None:
    """Add list c's part to the scores of the documents in a window; count its group as held."""
    first, until, scores, held, seen, group, grid = window
    docs, tfs, shares = rows
    own_docs, own_shares = docs[c], shares[c]
    while state[c, BLOCK_NOW] < state[c, BLOCKS]:
        _load(words, state, c, docs, tfs)
        _score(state, c, (own_docs, tfs[c], own_shares), norms, factors, grid)
        begin, end = state[c, NEXT], state[c, HELD]
        while own_docs[np.uint64(begin)] < first:
            begin += 1
        whole = own_docs[np.uint64(end - 1)] < until
        if not whole:
            end = begin
            while own_docs[np.uint64(end)] < until:
                end += 1
        for j in range(begin, end):
            i = np.uint64(j)
            scores[np.uint64(own_docs[i]) - np.uint64(first)] += own_shares[i]
        if group >= 0 and len(seen):
            for j in range(begin, end):
                doc = np.uint64(own_docs[np.uint64(j)]) - np.uint64(first)
                held[doc] += seen[doc] != group
                seen[doc] = group
        elif group >= 0:
            for j in range(begin, end):
                held[np.uint64(own_docs[np.uint64(j)]) - np.uint64(first)] += 1
        state[c, NEXT] = end
        if not whole:
            break
        state[c, BLOCK_NOW] += 1
        state[c, NEXT] = 0


@compiled
def _look_up(words: Any, state: Any, c: int, document: int, rows: Any, formula: Any) -> float:
    """What list c adds to `document`; 0 if it does not hold it. Documents must be asked rising."""
    docs, tfs, _ = rows
    norm, factors, grid = formula
    if not _seek(words, state, c, document, docs):
        return 0.0
    _load(words, state, c, docs, tfs)
    i = state[c, NEXT]
    while docs[c, i] < document:
        i += 1
    state[c, NEXT] = i
    if docs[c, i] != document:
        return 0.0
    return _share(np.float64(np.int32(tfs[c, i])), norm, factors, grid)


@compiled
def _reach(scores: Any, enough: float) -> int:
    """How many of `scores` are `enough` or more."""
    hits = 0
    for i in range(len(scores)):
        hits += scores[i] >= enough
    return hits


@compiled
def _cut(docs: Any, scores: Any, n: int, depth: int) -> tuple[int, float]:
    """Keep the `depth` best of n, and what ties with the last; their number and the least score."""
    rounded = scores[:n].astype(np.float32)
    least = np.partition(rounded, n - depth)[n - depth]
    kept = 0
    for i in range(n):
        if rounded[i] >= least:
            docs[kept], scores[kept] = docs[i], scores[i]
            kept += 1
    return kept, np.float64(np.nextafter(least, np.float32(-np.inf)))


@compiled
def best(
    lists: Any, norms: Any, excluded: Any, depth: int, threshold: float, grid: float, minimum: int
) -> Any:
    """The documents with the highest sums over several lists, exactly, without adding up all.

    lists: words, then for each list its first word, its row of `norms`, its group, and what it adds
    to a document: WEIGHT · tf / (SATURATION · tf + norm), at most LIMIT, at least LEAST. FLOOR and
    SLOPE: norm ≥ floor + slope · length. norms: (rows, documents). excluded: (documents,), or empty
    for none. threshold: documents that score below it may be left out. grid: each addend is rounded
    to a multiple of its last bit, so that sums are exact in any order. minimum: groups, 0 and up,
    that a document must hold lists of (those of group −1 do not count); −1 for any list, where each
    adds more than 0 and has group −1, and only then are lists left unread that can not matter.

    Returns documents and scores, the `depth` best and what ties with the last as float32, in no
    order; the number of documents that match (0 for −1); and the threshold reached.
    """
    words, ats, fields, groups, terms = lists
    count, documents = len(ats), norms.shape[1]
    depth = min(depth, documents)
    state = np.zeros((count, 9), np.int64)
    rows = (
        np.empty((count, BLOCK), np.uint32),
        np.empty((count, BLOCK), np.uint32),
        np.empty((count, BLOCK)),
    )
    for c in range(count):
        _begin(words, ats[c], state, c)
        if state[c, TABLE] < 0:
            _load(words, state, c, rows[0], rows[1])
            factors = (terms[c, WEIGHT], terms[c, SATURATION], terms[c, LEAST])
            one = (rows[0][c], rows[1][c], rows[2][c])
            _score(state, c, one, norms[fields[c]], factors, grid)
    order = np.argsort(terms[:, LIMIT]) if minimum < 0 else np.arange(count)
    sums = np.zeros(count + 1)  # bounds of the lists before each place in `order`
    scores = np.zeros(WINDOW)
    held = np.zeros(WINDOW if minimum >= 0 else 0, np.int32)
    seen = np.zeros(len(held) if len(np.unique(groups)) < count else 0, np.int32)
    candidates = np.empty(WINDOW, np.int64)
    found, sums_found = np.empty(2 * depth + WINDOW, np.int64), np.empty(2 * depth + WINDOW)
    n, matched, cut_at = 0, 0, 2 * depth

    for first in range(0, documents, WINDOW):
        until = min(first + WINDOW, documents)
        essential = 0
        for place in range(count):
            c = order[place]
            _seek(words, state, c, first, rows[0])
            sums[place + 1] = sums[place]
            if minimum < 0:
                sums[place + 1] += _most(words, state, c, until, rows, terms)
                if sums[place + 1] < threshold:
                    essential = place + 1
        if minimum < 0 and (essential == count or not sums[count]):
            continue

        size = until - first
        scores[:] = 0
        held[:] = 0
        seen[:] = -1
        for place in range(essential, count):
            c = order[place]
            window = (first, until, scores, held, seen, groups[c], grid)
            factors = (terms[c, WEIGHT], terms[c, SATURATION], terms[c, LEAST])
            _add(words, state, c, window, rows, norms[fields[c]], factors)

        m = 0
        if minimum < 0:
            enough = max(threshold - sums[essential], 5e-324)
            while essential:
                c = order[essential - 1]
                if _reach(scores, enough) * LOOK_UP < state[c, SIZE] * WINDOW // documents:
                    break
                window = (first, until, scores, held, seen, groups[c], grid)
                factors = (terms[c, WEIGHT], terms[c, SATURATION], terms[c, LEAST])
                _add(words, state, c, window, rows, norms[fields[c]], factors)
                essential -= 1
                enough = max(threshold - sums[essential], 5e-324)
            for begin in range(0, size, 64):
                if _reach(scores[begin : begin + 64], enough):
                    for i in range(begin, begin + 64):
                        if scores[i] >= enough and not (len(excluded) and excluded[first + i]):
                            candidates[m] = first + i
                            m += 1
        else:
            for i in range(size):
                if held[i] >= minimum and not (len(excluded) and excluded[first + i]):
                    candidates[m] = first + i
                    m += 1
            matched += m

        for place in range(essential - 1, -1, -1):
            c = order[place]
            factors = (terms[c, WEIGHT], terms[c, SATURATION], terms[c, LEAST])
            kept = 0
            for i in range(m):
                doc = candidates[i]
                norm = norms[fields[c], doc]
                score = scores[doc - first]
                score += _look_up(words, state, c, doc, rows, (norm, factors, grid))
                if score + sums[place] >= threshold:
                    scores[doc - first] = score
                    candidates[kept] = doc
                    kept += 1
            m = kept

        while n + m > len(found):
            found, sums_found = np.append(found, found), np.append(sums_found, sums_found)
        for i in range(m):
            score = scores[candidates[i] - first]
            if score >= threshold:
                found[n], sums_found[n] = candidates[i], score
                n += 1
        if n >= cut_at and n > depth:
            n, threshold = _cut(found, sums_found, n, depth)
            cut_at = 2 * n
    if n > depth:
        n, threshold = _cut(found, sums_found, n, depth)
    return found[:n], sums_found[:n], matched, threshold
