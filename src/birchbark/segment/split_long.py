"""How is a segment that exceeds the model's token budget split, so that no token is lost?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from birchbark.records import Ids, Segment

AT_ONCE = 200_000  # characters, which need some hundred bytes each while they are encoded
Encode = Callable[[Sequence[str]], list[Ids]]
Spans = Callable[[str], list[tuple[int, int]]]
Encoded = tuple[Segment, Ids]


def split_long(
    segments: Sequence[Segment], token_budget: int, encode: Encode, spans: Spans
) -> list[list[Encoded]]:
    """Return for each segment its chunks with their token ids.

    A segment that fits the token budget is a single chunk. Chunks end between words where possible.
    A title that is prepended to a segment is prepended to its first chunk only.

    token_budget: the maximum number of tokens per chunk, 1 or more. encode: texts → token ids.
    spans: text → (start, end) in characters of each of its tokens.
    """
    fitted: list[list[Encoded]] = []
    for some in _slices(segments):
        for segment, ids in zip(some, encode([s.text for s in some]), strict=True):
            if len(ids) <= token_budget:
                fitted.append([(segment, ids)])
            else:
                chunks = list(_chunks(segment, token_budget, spans))
                fitted.append(list(zip(chunks, encode([c.text for c in chunks]), strict=True)))
    return fitted


def _slices(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield the segments, as many at a time as have some 200,000 characters together."""
    some, characters = list[Segment](), 0
    for segment in segments:
        some.append(segment)
        characters += len(segment.text)
        if characters > AT_ONCE:
            yield some
            some, characters = [], 0
    if some:
        yield some


def _chunks(segment: Segment, token_budget: int, spans: Spans) -> Iterator[Segment]:
    text = segment.text
    starts = [start for start, _ in spans(text)]
    prefix = len(text) - (segment.end - segment.start)  # characters of the prepended title
    begin = first = 0
    while begin < len(text):
        while first < len(starts) and starts[first] < begin:
            first += 1
        end = _end_of_chunk(
            text, begin, [*starts[first : first + token_budget + 1], len(text)], token_budget, spans
        )
        start, finish = (segment.start + max(0, at - prefix) for at in (begin, end))
        yield Segment(segment.doc_id, start, finish, text[begin:end])
        begin = end


def _end_of_chunk(text: str, begin: int, starts: list[int], token_budget: int, spans: Spans) -> int:
    """Return the end of the chunk that starts at `begin` and has at most `token_budget` tokens.

    The tokens of the chunk are counted again, since the parts of a split word may have more tokens
    than the word. starts: where the tokens from `begin` on start, then the end of the text.
    """
    count = min(token_budget, len(starts) - 1)
    while count > 1:
        end = starts[count]
        space = max(text.rfind(" ", begin + 1, end), text.rfind("\n", begin + 1, end))
        if end < len(text) and not text[end - 1].isspace() and space > begin:
            end = space + 1
        excess = len(spans(text[begin:end])) - token_budget
        if excess <= 0:
            return end
        count -= min(excess, count - 1)
    return max(begin + 1, starts[min(1, len(starts) - 1)])
