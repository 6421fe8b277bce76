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

from typing import Any, NamedTuple

import numpy as np

from birchbark.index.compiled import compiled
from birchbark.index.packing import BLOCK, ENTRY, LONG, MOST_TF

WINDOW = 16384  # documents whose scores are added up at a time
LOOK_UP = 30  # postings that are read in the time of looking one document up
LEAST_SCORE = 5e-324  # any score above 0 reaches it
# columns of `Lists.terms`
WEIGHT, SATURATION, FLOOR, SLOPE, LIMIT, LEAST = range(6)
# columns of `Lists.state`
TABLE, BASE, SIZE, BLOCKS, BLOCK_NOW, LOADED, HELD, NEXT, SCORED = range(9)


class Lists(NamedTuple):
    """The lists of one query while they are read, a row each.

    words: of all lists. terms: what a list adds to a score (see `best`). fields: which row of
    `norms` it takes; groups: which term it stands for, or −1. state: where its reading stands.
    docs, tfs, shares: of the block it has unpacked. norms: (fields, documents). documents: how many
    there are. grid: see `best`.
    """

    words: Any
    terms: Any
    fields: Any
    groups: Any
    state: Any
    docs: Any
    tfs: Any
    shares: Any
    norms: Any
    documents: int
    grid: float


class Window(NamedTuple):
    """Documents first:until, whose scores are being added up.

    scores: (WINDOW,). held: groups that each document holds lists of; empty if nobody asks. seen:
    the last such group; empty if each group has one list.
    """

    first: int
    until: int
    scores: Any
    held: Any
    seen: Any


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
def unpack(words: Any, ats: Any, documents: int, docs: Any, tfs: Any) -> None:
    """Documents, below `documents`, and frequencies of the lists at `ats`, end to end."""
    nothing = np.zeros((1, 6))
    none = np.zeros(1, np.int64)
    lists = _new_lists(words, nothing, (none, none), np.zeros((1, 1)), documents, 0.0)
    place = 0
    for at in ats:
        _begin(lists, 0, at)
        for block in range(lists.state[0, BLOCKS]):
            lists.state[0, BLOCK_NOW] = block
            _load(lists, 0)
            for i in range(lists.state[0, HELD]):
                docs[place] = lists.docs[0, i]
                tfs[place] = lists.tfs[0, i]
                place += 1


@compiled
def _new_lists(
    words: Any, terms: Any, columns: Any, norms: Any, documents: int, grid: float
) -> Any:
    """Room to read as many lists as there are rows of `terms`. columns: fields, groups."""
    count = len(terms)
    docs, tfs = np.empty((count, BLOCK), np.uint32), np.empty((count, BLOCK), np.uint32)
    state, shares = np.zeros((count, 9), np.int64), np.empty((count, BLOCK))
    fields, groups = columns
    return Lists(words, terms, fields, groups, state, docs, tfs, shares, norms, documents, grid)


@compiled
def _numbers(words: Any, bit: int, bits: int, n: int, out: Any) -> None:
    """The n numbers of `bits` bits at position `bit`. Unsigned, which is twice as fast."""
    if not bits:  # there may be no word here to read
        out[:n] = 0
        return
    one, five, low, word_bits = np.uint64(1), np.uint64(5), np.uint64(31), np.uint64(32)
    mask = (one << np.uint64(bits)) - one
    position, step = np.uint64(bit), np.uint64(bits)
    for i in range(n):
        word = position >> five
        pair = np.uint64(words[word]) | np.uint64(words[word + one]) << word_bits
        out[np.uint64(i)] = np.uint32((pair >> (position & low)) & mask)
        position += step


@compiled
def _begin(lists: Any, c: int, at: int) -> None:
    """Set list c, which starts at word `at`, to its first block."""
    if not 0 <= at < len(lists.words) - 1:
        raise ValueError("postings are damaged: a list starts behind the end")
    state, long = lists.state[c], np.int64(lists.words[at]) & LONG
    state[SIZE] = frequency(lists.words, at)
    state[BLOCKS] = (state[SIZE] + BLOCK - 1) // BLOCK
    state[TABLE] = at + 1 if long else -1
    state[BASE] = at + 1 + (ENTRY * state[BLOCKS] if long else 0)
    state[BLOCK_NOW] = state[NEXT] = state[SCORED] = 0
    state[LOADED] = -1
    if state[BASE] >= len(lists.words) or (not long and state[SIZE] > BLOCK):
        raise ValueError("postings are damaged: a list is too long")


@compiled
def _load(lists: Any, c: int) -> None:
    """Unpack the present block of list c, unless it is there."""
    words, state, docs, tfs = lists.words, lists.state[c], lists.docs[c], lists.tfs[c]
    block = state[BLOCK_NOW]
    if state[LOADED] == block:
        return
    n, before, word, last = state[SIZE], np.int64(-1), state[BASE], np.int64(-1)
    if state[TABLE] < 0:
        widths = np.int64(words[word - 1]) >> 8 & 0xFFF
    else:
        entry = state[TABLE] + ENTRY * block
        n = min(n - BLOCK * block, BLOCK)
        word += np.int64(words[entry + 1])
        widths = np.int64(words[entry + 2]) & 0xFFF
        last = np.int64(words[entry])
        if block:
            before = np.int64(words[entry - ENTRY])
    doc_bits, tf_bits = widths & 63, widths >> 6
    if word + (n * (doc_bits + tf_bits) + 31) // 32 >= len(words):
        raise ValueError("postings are damaged: a block goes on behind the end")
    _numbers(words, word * 32, doc_bits, n, docs)
    _numbers(words, word * 32 + n * doc_bits, tf_bits, n, tfs)
    for j in range(n):
        i = np.uint64(j)
        before += np.int64(docs[i]) + 1
        docs[i] = np.uint32(before)
        tfs[i] += np.uint32(1)
    if before >= lists.documents or (last >= 0 and before != last):
        raise ValueError("postings are damaged: no such document")
    state[LOADED], state[HELD] = block, n
    state[NEXT] = state[SCORED] = 0


@compiled
def _share(tf: float, norm: float, factors: Any, grid: float) -> float:
    """Weight · tf / (saturation · tf + norm), rounded to the grid; above 0 if the weight is."""
    weight, saturation, least = factors
    return max((weight * tf / (saturation * tf + norm) + grid) - grid, least)


@compiled
def _factors(lists: Any, c: int) -> Any:
    terms = lists.terms[c]
    return terms[WEIGHT], terms[SATURATION], terms[LEAST]


@compiled
def _score(lists: Any, c: int) -> None:
    """What list c adds to each document of its block, unless that is known."""
    if lists.state[c, SCORED]:
        return
    docs, tfs, shares = lists.docs[c], lists.tfs[c], lists.shares[c]
    norms, factors, grid, n = lists.norms[lists.fields[c]], _factors(lists, c), lists.grid, 0
    n = lists.state[c, HELD]
    for j in range(n):
        i = np.uint64(j)
        shares[i] = norms[docs[i]]
    for j in range(n):
        i = np.uint64(j)
        shares[i] = _share(np.float64(np.int32(tfs[i])), shares[i], factors, grid)
    lists.state[c, SCORED] = 1


@compiled
def _last(lists: Any, c: int, block: int) -> int:
    """The last document of a block of list c; a list of one block is always unpacked."""
    state = lists.state[c]
    if state[TABLE] < 0:
        return np.int64(lists.docs[c, state[HELD] - 1])
    return np.int64(lists.words[state[TABLE] + ENTRY * block])


@compiled
def _seek(lists: Any, c: int, document: int) -> bool:
    """Move list c on to the first block that ends at `document` or later; False if none does."""
    state = lists.state[c]
    block = state[BLOCK_NOW]
    while block < state[BLOCKS] and _last(lists, c, block) < document:
        block += 1
    if block != state[BLOCK_NOW]:
        state[BLOCK_NOW], state[NEXT] = block, 0
    return block < state[BLOCKS]


@compiled
def _most(lists: Any, c: int, until: int) -> float:
    """The most that list c adds to a document from its present place on and before `until`."""
    words, state, terms, bound = lists.words, lists.state[c], lists.terms[c], 0.0
    if state[BLOCK_NOW] >= state[BLOCKS]:
        return bound
    if state[TABLE] < 0:
        for i in range(state[NEXT], state[HELD]):
            if lists.docs[c, i] >= until:
                break
            bound = max(bound, lists.shares[c, i])
        return bound
    for block in range(state[BLOCK_NOW], state[BLOCKS]):
        entry = state[TABLE] + ENTRY * block
        tf = np.float64(np.int64(words[entry + 2]) >> 12)
        norm = terms[FLOOR] + terms[SLOPE] * np.float64(words[entry + 3])
        most = terms[WEIGHT] * tf / (terms[SATURATION] * tf + norm)
        bound = max(bound, terms[LIMIT] if tf >= MOST_TF else min(most, terms[LIMIT]))
        if np.int64(words[entry]) >= until - 1:
            break
    return bound * (1 + 1e-9) + terms[LEAST]


@compiled
def _add(lists: Any, c: int, window: Any) -> None:
    """Add list c's part to the scores of the documents in a window; count its group as held."""
    state, docs, shares = lists.state[c], lists.docs[c], lists.shares[c]
    first, scores, held, seen = np.uint64(window.first), window.scores, window.held, window.seen
    group = lists.groups[c] if len(held) else -1
    while state[BLOCK_NOW] < state[BLOCKS]:
        _load(lists, c)
        _score(lists, c)
        begin, end = state[NEXT], state[HELD]
        while docs[np.uint64(begin)] < window.first:
            begin += 1
        whole = docs[np.uint64(end - 1)] < window.until
        if not whole:
            end = begin
            while docs[np.uint64(end)] < window.until:
                end += 1
        for j in range(begin, end):
            i = np.uint64(j)
            scores[np.uint64(docs[i]) - first] += shares[i]
        if group >= 0 and len(seen):
            for j in range(begin, end):
                doc = np.uint64(docs[np.uint64(j)]) - first
                held[doc] += seen[doc] != group
                seen[doc] = group
        elif group >= 0:
            for j in range(begin, end):
                held[np.uint64(docs[np.uint64(j)]) - first] += 1
        state[NEXT] = end
        if not whole:
            break
        state[BLOCK_NOW] += 1
        state[NEXT] = 0


@compiled
def _look_up(lists: Any, c: int, document: int) -> float:
    """What list c adds to `document`; 0 if it does not hold it. Documents must be asked rising."""
    if not _seek(lists, c, document):
        return 0.0
    _load(lists, c)
    state, docs = lists.state[c], lists.docs[c]
    i = state[NEXT]
    while docs[i] < document:
        i += 1
    state[NEXT] = i
    if docs[i] != document:
        return 0.0
    norm = lists.norms[lists.fields[c], document]
    return _share(np.float64(np.int32(lists.tfs[c, i])), norm, _factors(lists, c), lists.grid)


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
def _essential(lists: Any, order: Any, window: Any, threshold: float, sums: Any) -> int:
    """How many lists, the lightest first, can not lift a document to the threshold together.

    order: the lists by rising weight. sums: filled with what the first 0, 1, … can add at most.
    """
    unimportant = 0
    for place in range(len(order)):
        c = order[place]
        _seek(lists, c, window.first)
        sums[place + 1] = sums[place] + _most(lists, c, window.until)
        if sums[place + 1] < threshold:
            unimportant = place + 1
    return unimportant


@compiled
def _add_best(lists: Any, order: Any, window: Any, threshold: float, sums: Any, out: Any) -> int:
    """Scores of a window's documents that can reach the threshold; their number, into `out`.

    Lists that matter are added up whole. The others are only looked into for documents that may
    still get there, unless these are so many that adding up is quicker.
    """
    left = _essential(lists, order, window, threshold, sums)
    if left == len(order) or not sums[len(order)]:
        return 0
    documents, scores = lists.documents, window.scores
    for place in range(left, len(order)):
        _add(lists, order[place], window)
    while left:
        c, enough = order[left - 1], max(threshold - sums[left], LEAST_SCORE)
        if _reach(scores, enough) * LOOK_UP < lists.state[c, SIZE] * WINDOW // documents:
            break
        _add(lists, c, window)
        left -= 1
    enough, n = max(threshold - sums[left], LEAST_SCORE), 0
    for begin in range(0, WINDOW, 64):
        if _reach(scores[begin : begin + 64], enough):
            for i in range(begin, begin + 64):
                if scores[i] >= enough:
                    out[n] = i
                    n += 1
    for place in range(left - 1, -1, -1):
        kept = 0
        for j in range(n):
            i = out[j]
            scores[i] += _look_up(lists, order[place], window.first + i)
            if scores[i] + sums[place] >= threshold:
                out[kept] = i
                kept += 1
        n = kept
    return n


@compiled
def _add_all(lists: Any, window: Any, minimum: int, out: Any) -> int:
    """Scores of a window's documents that hold lists of enough groups; their number, into `out`."""
    window.held[:] = 0
    window.seen[:] = -1
    for c in range(len(lists.terms)):
        if _seek(lists, c, window.first):
            _add(lists, c, window)
    n = 0
    for i in range(window.until - window.first):
        if window.held[i] >= minimum:
            out[n] = i
            n += 1
    return n


@compiled
def best(
    query: Any, norms: Any, excluded: Any, depth: int, threshold: float, grid: float, minimum: int
) -> Any:
    """The documents with the highest sums over several lists, exactly, without adding up all.

    query: words, then for each list its first word, its row of `norms`, its group, and what it adds
    to a document: WEIGHT · tf / (SATURATION · tf + norm), at most LIMIT, at least LEAST. FLOOR and
    SLOPE: norm ≥ floor + slope · length. norms: (rows, documents). excluded: (documents,), or empty
    for none. threshold: documents that score below it may be left out. grid: each addend is rounded
    to a multiple of its last bit, so that sums are exact in any order. minimum: groups, 0 and up,
    that a document must hold lists of (those of group −1 do not count); −1 for any list, where each
    adds more than 0 and has group −1, and only then are lists left unread that can not matter.

    Returns documents and scores, the `depth` best and what ties with the last as float32, in no
    order; the number of documents that match (0 for −1); and the threshold reached.
    """
    words, ats, fields, groups, terms = query
    count, documents = len(ats), norms.shape[1]
    lists = _new_lists(words, terms, (fields, groups), norms, documents, grid)
    for c in range(count):
        _begin(lists, c, ats[c])
        if lists.state[c, TABLE] < 0:
            _load(lists, c)
            _score(lists, c)
    held = np.zeros(WINDOW if minimum >= 0 else 0, np.int32)
    seen = np.zeros(len(held) if len(np.unique(groups)) < count else 0, np.int32)
    order, sums = np.argsort(terms[:, LIMIT]), np.zeros(count + 1)
    scores, reached = np.zeros(WINDOW), np.empty(WINDOW, np.int64)
    depth = min(depth, documents)
    found_docs = np.empty(2 * depth + WINDOW, np.int64)
    found, matched, cut_at = 0, 0, 2 * depth
    found_scores = np.empty(len(found_docs))
    for first in range(0, documents, WINDOW):
        scores[:] = 0
        window = Window(first, min(first + WINDOW, documents), scores, held, seen)
        if minimum < 0:
            n = _add_best(lists, order, window, threshold, sums, reached)
        else:
            n = _add_all(lists, window, minimum, reached)
        while found + n > len(found_docs):
            found_docs = np.append(found_docs, found_docs)
            found_scores = np.append(found_scores, found_scores)
        for j in range(n):
            i = reached[j]
            if len(excluded) and excluded[first + i]:
                continue
            matched += minimum >= 0
            if scores[i] >= threshold:
                found_docs[found], found_scores[found] = first + i, scores[i]
                found += 1
        if found >= cut_at and found > depth:
            found, threshold = _cut(found_docs, found_scores, found, depth)
            cut_at = 2 * found
    if found > depth:
        found, threshold = _cut(found_docs, found_scores, found, depth)
    return found_docs[:found], found_scores[:found], matched, threshold
