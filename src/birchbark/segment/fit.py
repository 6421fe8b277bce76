"""What becomes of a segment that is longer than the model can read? It is cut, never cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from birchbark.records import Segment


def fit(
    segments: Iterable[Segment], room: int, spans: Callable[[str], list[tuple[int, int]]]
) -> Iterator[Segment]:
    """The segments in order, those of more than `room` tokens cut into chunks of `room` tokens.

    spans: start and end of each token in a text, in characters. A text put in front of a segment (a
    title) is in front of its first chunk alone.
    """
    for segment in segments:
        if segment.text.isascii() and len(segment.text) <= room:
            yield segment  # an ASCII token has at least one character
        else:
            yield from _chunks(segment, room, spans(segment.text))


def _chunks(segment: Segment, room: int, tokens: list[tuple[int, int]]) -> Iterator[Segment]:
    if len(tokens) <= room:
        yield segment
        return
    text = segment.text
    prefix = len(text) - (segment.end - segment.start)
    begin = 0
    for first in range(room, len(tokens) + room, room):
        end = tokens[first][0] if first < len(tokens) else len(text)
        start = segment.start + max(0, begin - prefix)
        finish = segment.start + max(0, end - prefix)
        if end > begin:
            yield Segment(segment.doc_id, start, finish, text[begin:end])
        begin = end
