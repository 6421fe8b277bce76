"""What becomes of a segment that is longer than the model can read? It is cut, never cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from birchbark.records import Ids, Segment

Encode = Callable[[Sequence[str]], list[Ids]]
Spans = Callable[[str], list[tuple[int, int]]]
Encoded = tuple[Segment, Ids]


def fit(
    segments: Sequence[Segment], room: int, encode: Encode, spans: Spans
) -> list[list[Encoded]]:
    """For each segment itself with its token ids, or in their place those of chunks that fit.

    room: tokens that fit, 1 or more. spans: start and end of each token in a text, in characters.
    Chunks end between words where they can. A text put in front of a segment (a title) is in front
    of its first chunk alone.
    """
    fitted: list[list[Encoded]] = []
    for segment, ids in zip(segments, encode([s.text for s in segments]), strict=True):
        if len(ids) <= room:
            fitted.append([(segment, ids)])
        else:
            chunks = list(_chunks(segment, room, spans))
            fitted.append(list(zip(chunks, encode([c.text for c in chunks]), strict=True)))
    return fitted


def _chunks(segment: Segment, room: int, spans: Spans) -> Iterator[Segment]:
    text = segment.text
    starts = [start for start, _ in spans(text)]
    prefix = len(text) - (segment.end - segment.start)
    begin = first = 0
    while begin < len(text):
        while first < len(starts) and starts[first] < begin:
            first += 1
        end = _end_of_chunk(
            text, begin, [*starts[first : first + room + 1], len(text)], room, spans
        )
        start, finish = (segment.start + max(0, at - prefix) for at in (begin, end))
        yield Segment(segment.doc_id, start, finish, text[begin:end])
        begin = end


def _end_of_chunk(text: str, begin: int, starts: list[int], room: int, spans: Spans) -> int:
    """Where a chunk from `begin` ends, so that its own tokens are `room` at most.

    starts: of the tokens from `begin` on, and an end. A word that is cut may have more tokens than
    it had as a part of the whole, so each chunk is counted by itself.
    """
    count = min(room, len(starts) - 1)
    while count > 1:
        end = starts[count]
        space = max(text.rfind(" ", begin + 1, end), text.rfind("\n", begin + 1, end))
        if end < len(text) and not text[end - 1].isspace() and space > begin:
            end = space + 1
        excess = len(spans(text[begin:end])) - room
        if excess <= 0:
            return end
        count -= min(excess, count - 1)
    return max(begin + 1, starts[min(1, len(starts) - 1)])
