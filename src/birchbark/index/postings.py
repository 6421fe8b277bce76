"""How are posting lists read, and the documents with the highest scores found?

A list is a sequence of 32-bit words. Numbers are packed from the lowest bit of a word upwards.

    up to 128 postings   n | doc bits << 8 | tf bits << 14
                         n gaps, n frequencies - 1
    more                 n | 1 << 31
                         for each block of 128 postings, a table entry of four words:
                           last document
                           first word of the block, counted from the end of the table
                           doc bits | tf bits << 6 | largest frequency << 12
                           length of the shortest document
                         the blocks, each starting at a new word: gaps, frequencies - 1

n is the number of postings. A gap is the number of documents between a document and the one before
it in the list. The largest frequency and the shortest length bound what a block can add to a score,
for any k1 and b chosen at query time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from birchbark.compiled import compiled
from birchbark.index.compress_postings import BLOCK, ENTRY, LONG, MAX_TF

# All kernels are in this file because numba caches compiled code by file.
WINDOW = 16384  # documents whose scores are accumulated at a time
LOOKUP_COST = 30  # to look up one document takes as long as reading this many postings
MIN_SCORE = 5e-324  # the smallest positive float64
# Columns of `Lists.terms`.
WEIGHT, SATURATION, FLOOR, SLOPE, MAX_ADDEND, MIN_ADDEND = range(6)
# Columns of `Lists.state`: the offsets of the table (−1 for a list of one block) and of the blocks;
# the numbers of postings and of blocks; the current block; the unpacked block and its number of
# postings; the next posting in it; whether its addends have been computed.
TABLE, BASE, SIZE, BLOCKS, CURRENT, UNPACKED, UNPACKED_SIZE, NEXT, SCORED = range(9)


class Lists(NamedTuple):
    """The n lists of one query, and the position in each while it is read.

    words: (words,), the words of all lists of the part.
    terms: (n, 6), the factors of each list (see `best_documents`).
    fields: (n,), the row of `norms` for each list.
    groups: (n,), the query term that each list belongs to, or −1.
    state: (n, 9), the position in each list.
    docs, tfs, addends: (n, BLOCK), the unpacked block of each list.
    norms: (fields, documents), the norm of each document in each field.
    documents: the number of documents in the part.
    grid: see `best_documents`.
    """

    words: Any
    terms: Any
    fields: Any
    groups: Any
    state: Any
    docs: Any
    tfs: Any
    addends: Any
    norms: Any
    documents: int
    grid: float


class Memory(NamedTuple):
    """Arrays that each window uses again, (WINDOW,).

    scores, group_counts, last_groups: see `Window`. positions: of documents in the window.
    """

    scores: Any
    positions: Any
    group_counts: Any
    last_groups: Any


class Hits(NamedTuple):
    """The documents found so far.

    docs, scores: arrays with space for more than are found. count: how many are found. threshold:
    further documents that score below it do not matter.
    """

    docs: Any
    scores: Any
    count: int
    threshold: float


class Window(NamedTuple):
    """The documents first:until, whose scores are being accumulated.

    scores: (WINDOW,), the score of each document. group_counts: (WINDOW,), the number of groups
    that match each document; empty if it is not needed. last_groups: (WINDOW,), the last group
    counted for each document; empty if every group has a single list.
    """

    first: int
    until: int
    scores: Any
    group_counts: Any
    last_groups: Any


@compiled
def frequency(words: Any, offset: int) -> int:
    """Return the number of postings in the list that starts at word `offset`."""
    head = np.int64(words[offset])
    return head & (LONG - 1) if head & LONG else head & 0xFF


@compiled
def frequencies(words: Any, offsets: Any) -> Any:
    """Return the number of postings in each of several lists, int64 (lists,)."""
    sizes = np.empty(len(offsets), np.int64)
    for i in range(len(offsets)):
        sizes[i] = frequency(words, offsets[i])
    return sizes


def unpack(words: Any, offsets: Any, documents: int, docs: Any, tfs: Any) -> None:
    """Fill `docs` and `tfs` (postings,) with the postings of the lists at `offsets`, end to end.

    documents: the number of documents. Raises ValueError for a document number that is too large.
    """
    zero = np.zeros(1, np.int64)
    columns = zero, zero, np.zeros((1, 6))
    lists = _new_lists((words, *columns), np.zeros((1, 1)), documents, 0.0)
    _unpack_all(lists, offsets, docs, tfs)


@compiled
def _unpack_all(lists: Any, offsets: Any, docs: Any, tfs: Any) -> None:
    """See `unpack`. lists: one, which is opened at each offset in turn."""
    position = 0
    for offset in offsets:
        _begin(lists, 0, offset)
        for block in range(lists.state[0, BLOCKS]):
            lists.state[0, CURRENT] = block
            _unpack_block(lists, 0)
            for i in range(lists.state[0, UNPACKED_SIZE]):
                docs[position] = lists.docs[0, i]
                tfs[position] = lists.tfs[0, i]
                position += 1


def _new_lists(of_query: Any, norms: Any, documents: int, grid: float) -> Lists:
    """Allocate the `Lists` of a query: words, fields, groups and terms (n, 6)."""
    words, fields, groups, terms = of_query
    shape, state = (len(terms), BLOCK), np.zeros((len(terms), 9), np.int64)
    docs, tfs, addends = np.empty(shape, np.uint32), np.empty(shape, np.uint32), np.empty(shape)
    return Lists(words, terms, fields, groups, state, docs, tfs, addends, norms, documents, grid)


@compiled
def _read_numbers(words: Any, bit: int, bits: int, n: int, out: Any) -> None:
    """Read n numbers of `bits` bits each, starting at bit position `bit`, into `out`.

    Unsigned arithmetic makes this twice as fast.
    """
    if not bits:  # all numbers are 0, and there may be no word to read
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
def _begin(lists: Any, c: int, offset: int) -> None:
    """Open list c, which starts at word `offset`, at its first block."""
    if not 0 <= offset < len(lists.words) - 1:
        raise ValueError("postings are damaged: a list starts beyond the end")
    state, long = lists.state[c], np.int64(lists.words[offset]) & LONG
    state[SIZE] = frequency(lists.words, offset)
    state[BLOCKS] = (state[SIZE] + BLOCK - 1) // BLOCK
    state[TABLE] = offset + 1 if long else -1
    state[BASE] = offset + 1 + (ENTRY * state[BLOCKS] if long else 0)
    state[CURRENT] = state[NEXT] = state[SCORED] = 0
    state[UNPACKED] = -1
    if state[BASE] >= len(lists.words) or (not long and state[SIZE] > BLOCK):
        raise ValueError("postings are damaged: a list is too long")


@compiled
def _unpack_block(lists: Any, c: int) -> None:
    """Unpack the current block of list c, unless it is unpacked already."""
    words, state, docs, tfs = lists.words, lists.state[c], lists.docs[c], lists.tfs[c]
    block = state[CURRENT]
    if state[UNPACKED] == block:
        return
    # Find the block's size, first word and bit widths, and the document before it.
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
        raise ValueError("postings are damaged: a block continues beyond the end")
    # Read the gaps and the frequencies − 1.
    _read_numbers(words, word * 32, doc_bits, n, docs)
    _read_numbers(words, word * 32 + n * doc_bits, tf_bits, n, tfs)
    # Sum the gaps to obtain document numbers.
    for j in range(n):
        i = np.uint64(j)
        before += np.int64(docs[i]) + 1
        docs[i] = np.uint32(before)
        tfs[i] += np.uint32(1)
    if before >= lists.documents or (last >= 0 and before != last):
        raise ValueError("postings are damaged: no such document")
    state[UNPACKED], state[UNPACKED_SIZE] = block, n
    state[NEXT] = state[SCORED] = 0


@compiled
def _addend(tf: float, norm: float, factors: Any, grid: float) -> float:
    """Return weight · tf / (saturation · tf + norm), rounded to the grid, but at least `minimum`.

    factors: weight, saturation, minimum.
    """
    weight, saturation, minimum = factors
    return max((weight * tf / (saturation * tf + norm) + grid) - grid, minimum)


@compiled
def _factors(lists: Any, c: int) -> Any:
    terms = lists.terms[c]
    return terms[WEIGHT], terms[SATURATION], terms[MIN_ADDEND]


@compiled
def _score_block(lists: Any, c: int) -> None:
    """Compute what list c adds to each document of its unpacked block, unless it is computed."""
    if lists.state[c, SCORED]:
        return
    docs, tfs, addends = lists.docs[c], lists.tfs[c], lists.addends[c]
    norms, factors, grid = lists.norms[lists.fields[c]], _factors(lists, c), lists.grid
    n = lists.state[c, UNPACKED_SIZE]
    # Gather the norms first, so that the compiler can vectorise the second loop.
    for j in range(n):
        i = np.uint64(j)
        addends[i] = norms[docs[i]]
    for j in range(n):
        i = np.uint64(j)
        addends[i] = _addend(np.float64(np.int32(tfs[i])), addends[i], factors, grid)
    lists.state[c, SCORED] = 1


@compiled
def _last_document(lists: Any, c: int, block: int) -> int:
    """Return the last document in a block of list c. A list of one block is always unpacked."""
    state = lists.state[c]
    if state[TABLE] < 0:
        return np.int64(lists.docs[c, state[UNPACKED_SIZE] - 1])
    return np.int64(lists.words[state[TABLE] + ENTRY * block])


@compiled
def _seek(lists: Any, c: int, document: int) -> bool:
    """Advance list c to the first block that ends at `document` or later; False if none does."""
    state = lists.state[c]
    block = state[CURRENT]
    while block < state[BLOCKS] and _last_document(lists, c, block) < document:
        block += 1
    if block != state[CURRENT]:
        state[CURRENT], state[NEXT] = block, 0
    return block < state[BLOCKS]


@compiled
def _max_addend(lists: Any, c: int, until: int) -> float:
    """Return an upper bound of what list c adds to any document from its position to `until`."""
    words, state, terms, bound = lists.words, lists.state[c], lists.terms[c], 0.0
    if state[CURRENT] >= state[BLOCKS]:
        return bound
    # A single block is scored already, so the bound is exact.
    if state[TABLE] < 0:
        for i in range(state[NEXT], state[UNPACKED_SIZE]):
            if lists.docs[c, i] >= until:
                break
            bound = max(bound, lists.addends[c, i])
        return bound
    # Several blocks: use the largest frequency and the shortest document of each.
    for block in range(state[CURRENT], state[BLOCKS]):
        entry = state[TABLE] + ENTRY * block
        tf = np.float64(np.int64(words[entry + 2]) >> 12)
        norm = terms[FLOOR] + terms[SLOPE] * np.float64(words[entry + 3])
        of_block = terms[WEIGHT] * tf / (terms[SATURATION] * tf + norm)
        limit = terms[MAX_ADDEND]
        bound = max(bound, limit if tf >= MAX_TF else min(of_block, limit))
        if np.int64(words[entry]) >= until - 1:
            break
    return bound * (1 + 1e-9) + terms[MIN_ADDEND]  # more than any rounding error


@compiled
def _add_list(lists: Any, c: int, window: Any) -> None:
    """Add list c to the scores of a window's documents, and count its group for each of them."""
    state, docs, addends = lists.state[c], lists.docs[c], lists.addends[c]
    first, scores = np.uint64(window.first), window.scores
    counts, last_groups = window.group_counts, window.last_groups
    group = lists.groups[c] if len(counts) else -1
    while state[CURRENT] < state[BLOCKS]:
        _unpack_block(lists, c)
        _score_block(lists, c)
        # Find the postings begin:end of the block that lie in the window.
        begin, end = state[NEXT], state[UNPACKED_SIZE]
        while docs[np.uint64(begin)] < window.first:
            begin += 1
        ends_here = docs[np.uint64(end - 1)] < window.until
        if not ends_here:
            end = begin
            while docs[np.uint64(end)] < window.until:
                end += 1
        # Add to the scores.
        for j in range(begin, end):
            i = np.uint64(j)
            scores[np.uint64(docs[i]) - first] += addends[i]
        # Count the group, once per document even if several of its lists match.
        if group >= 0 and len(last_groups):
            for j in range(begin, end):
                doc = np.uint64(docs[np.uint64(j)]) - first
                counts[doc] += last_groups[doc] != group
                last_groups[doc] = group
        elif group >= 0:
            for j in range(begin, end):
                counts[np.uint64(docs[np.uint64(j)]) - first] += 1
        # Continue with the next block unless the window ends in this one.
        state[NEXT] = end
        if not ends_here:
            break
        state[CURRENT] += 1
        state[NEXT] = 0


@compiled
def _look_up(lists: Any, c: int, document: int) -> float:
    """Return what list c adds to `document`, or 0 if the list does not contain it.

    Successive calls for a list must ask for documents in ascending order.
    """
    if not _seek(lists, c, document):
        return 0.0
    _unpack_block(lists, c)
    state, docs = lists.state[c], lists.docs[c]
    i = state[NEXT]
    while docs[i] < document:
        i += 1
    state[NEXT] = i
    if docs[i] != document:
        return 0.0
    norm = lists.norms[lists.fields[c], document]
    return _addend(np.float64(np.int32(lists.tfs[c, i])), norm, _factors(lists, c), lists.grid)


@compiled
def _count_reaching(scores: Any, threshold: float) -> int:
    """Return how many of `scores` are at least `threshold`."""
    hits = 0
    for i in range(len(scores)):
        hits += scores[i] >= threshold
    return hits


@compiled
def _non_essential(lists: Any, order: Any, window: Any, threshold: float, sums: Any) -> int:
    """Return how many of the first lists in `order` cannot together reach the threshold.

    order: (n,), the lists in ascending order of their limits. sums: (n + 1,), filled with upper
    bounds of what the first 0, 1, …, n of them add to any document in the window.
    """
    count = 0
    for i in range(len(order)):
        c = order[i]
        _seek(lists, c, window.first)
        sums[i + 1] = sums[i] + _max_addend(lists, c, window.until)
        if sums[i + 1] < threshold:
            count = i + 1
    return count


@compiled
def _score_best(lists: Any, order: Any, window: Any, threshold: float, sums: Any, out: Any) -> int:
    """Score the documents of a window that can reach the threshold (MaxScore).

    Essential lists are accumulated over the whole window. In the other lists, only documents that
    may still reach the threshold are looked up, unless there are so many of them that accumulating
    is faster. Fills `out` with the documents' positions in the window; returns their number.
    See Turtle & Flood (1995).
    """
    remaining = _non_essential(lists, order, window, threshold, sums)
    if remaining == len(order) or not sums[len(order)]:
        return 0
    documents, scores = lists.documents, window.scores
    # Accumulate the essential lists, in ascending order of their limits.
    for i in range(remaining, len(order)):
        _add_list(lists, order[i], window)
    # Accumulate further lists, in descending order, while many documents may reach the threshold.
    while remaining:
        c, needed = order[remaining - 1], max(threshold - sums[remaining], MIN_SCORE)
        lookups = _count_reaching(scores, needed)
        if lookups * LOOKUP_COST < lists.state[c, SIZE] * WINDOW // documents:
            break
        _add_list(lists, c, window)
        remaining -= 1
    # Collect the documents that may reach the threshold, 64 at a time.
    needed, n = max(threshold - sums[remaining], MIN_SCORE), 0
    for begin in range(0, WINDOW, 64):
        if _count_reaching(scores[begin : begin + 64], needed):
            for i in range(begin, begin + 64):
                if scores[i] >= needed:
                    out[n] = i
                    n += 1
    # Look these documents up in the remaining lists; drop each that cannot reach the threshold.
    for position in range(remaining - 1, -1, -1):
        count = 0
        for j in range(n):
            i = out[j]
            scores[i] += _look_up(lists, order[position], window.first + i)
            if scores[i] + sums[position] >= threshold:
                out[count] = i
                count += 1
        n = count
    return n


@compiled
def _score_all(lists: Any, window: Any, minimum: int, out: Any) -> int:
    """Score the documents of a window that match at least `minimum` groups.

    Fills `out` with their positions in the window; returns their number.
    """
    window.group_counts[:] = 0
    window.last_groups[:] = -1
    for c in range(len(lists.terms)):
        if _seek(lists, c, window.first):
            _add_list(lists, c, window)
    n = 0
    for i in range(window.until - window.first):
        if window.group_counts[i] >= minimum:
            out[n] = i
            n += 1
    return n


def best_documents(
    query: Any, norms: Any, excluded: Any, depth: int, threshold: float, grid: float, minimum: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Return the documents with the highest scores, exactly.

    A document's score is the sum of what each list adds to it: WEIGHT · tf / (SATURATION · tf +
    norm), at least MIN_ADDEND, and never more than MAX_ADDEND.

    query: the words of the part, and for each of n lists the offset of its first word (n,), its row
    of `norms` (n,), its group (n,) and its factors (n, 6). FLOOR and SLOPE bound the norms: norm ≥
    FLOOR + SLOPE · length.
    norms: (rows, documents).
    excluded: (documents,), which documents to leave out; empty if none.
    depth: the number of documents to return.
    threshold: documents that score below it may be omitted.
    grid: addends are rounded to multiples of the last bit of this number, so that sums are exact in
    any order.
    minimum: how many groups a document must match, 0 or more; group −1 does not count. Or −1: a
    document must match any list. Then each addend must be above 0 and each group −1, and of many
    documents, lists that cannot affect the result are skipped.

    Returns the `depth` best documents, and all documents tied with the last as float32, in no
    particular order; their scores; and the final threshold.
    """
    words, offsets, fields, groups, terms = query
    documents = norms.shape[1]
    skips = minimum < 0 and documents > WINDOW
    if minimum < 0 and not skips:  # scoring everything is fast, and its code is compiled sooner
        groups, minimum = np.zeros_like(groups), 1
    lists = _new_lists((words, fields, groups, terms), norms, documents, grid)
    _open(lists, offsets)
    order = np.argsort(terms[:, MAX_ADDEND], kind="stable")
    several = len(set(groups.tolist())) < len(groups)
    counts = np.empty(0 if skips else WINDOW, np.int32)
    memory = Memory(
        np.empty(WINDOW),
        np.empty(WINDOW, np.int64),
        counts,
        np.empty(len(counts) if several else 0, np.int32),
    )
    depth, first, count = min(depth, documents), 0, 0
    docs, scores = np.empty(2 * depth + WINDOW, np.int64), np.empty(2 * depth + WINDOW)
    while first < documents:
        hits = Hits(docs, scores, count, threshold)
        if skips:
            first, count = _collect_best(lists, order, memory, excluded, first, hits)
        else:
            first, count = _collect_all(lists, minimum, memory, excluded, first, hits)
        if count > depth:  # keep the best, and all documents tied with the last of them
            rounded = scores[:count].astype(np.float32)
            last = -np.partition(-rounded, depth - 1)[depth - 1]  # slow at the other end of ties
            best = np.flatnonzero(rounded >= last)
            count, threshold = len(best), float(np.nextafter(last, np.float32(-np.inf)))
            docs[:count], scores[:count] = docs[best], scores[best]
            if missing := max(0, 2 * count + WINDOW - len(docs)):
                docs = np.concatenate([docs, np.empty(missing, np.int64)])
                scores = np.concatenate([scores, np.empty(missing)])
    return docs[:count], scores[:count], threshold


@compiled
def _open(lists: Any, offsets: Any) -> None:
    """Open the lists at `offsets`; unpack and score each list of one block."""
    for c in range(len(offsets)):
        _begin(lists, c, offsets[c])
        if lists.state[c, TABLE] < 0:
            _unpack_block(lists, c)
            _score_block(lists, c)


@compiled
def _collect_best(
    lists: Any, order: Any, memory: Any, excluded: Any, first: int, hits: Any
) -> tuple[int, int]:
    """Append documents that can reach the threshold to the hits, until there may be no space.

    order: see `_score_best`. first: the first document of the next window. Returns the document
    that follows the last window, and the number of hits.
    """
    sums, count = np.zeros(len(order) + 1), hits.count
    while first < lists.documents and count + WINDOW <= len(hits.docs):
        window = _next_window(lists, memory, first)
        n = _score_best(lists, order, window, hits.threshold, sums, memory.positions)
        count = _append(window, memory.positions, n, excluded, hits, count)
        first = window.until
    return first, count


@compiled
def _collect_all(
    lists: Any, minimum: int, memory: Any, excluded: Any, first: int, hits: Any
) -> tuple[int, int]:
    """Append documents that match at least `minimum` groups; see `_collect_best`."""
    count = hits.count
    while first < lists.documents and count + WINDOW <= len(hits.docs):
        window = _next_window(lists, memory, first)
        n = _score_all(lists, window, minimum, memory.positions)
        count = _append(window, memory.positions, n, excluded, hits, count)
        first = window.until
    return first, count


def compile_for_many() -> None:
    """Compile what `best_documents` runs on many documents, if it has run on a few.

    Its types are those of few documents, but for the order of the lists instead of `minimum`.
    """
    few, many = cast(Any, _collect_all), cast(Any, _collect_best)
    order = many.typeof_pyval(np.zeros(1, np.int64))
    for lists, _, *others in few.signatures:
        many.compile((lists, order, *others))


@compiled
def _next_window(lists: Any, memory: Any, first: int) -> Any:
    """Return the window that begins with the document `first`."""
    memory.scores[:] = 0
    until = min(first + WINDOW, lists.documents)
    return Window(first, until, memory.scores, memory.group_counts, memory.last_groups)


@compiled
def _append(window: Any, positions: Any, n: int, excluded: Any, hits: Any, count: int) -> int:
    """Append those of n documents that are not excluded and reach the threshold to the hits.

    count: the number of hits. Returns the new one.
    """
    docs, scores = hits.docs, hits.scores
    for j in range(n):
        i = positions[j]
        if len(excluded) and excluded[window.first + i]:
            continue
        if window.scores[i] >= hits.threshold:
            docs[count], scores[count] = window.first + i, window.scores[i]
            count += 1
    return count
