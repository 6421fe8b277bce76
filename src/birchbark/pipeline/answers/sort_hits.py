"""In which order are hits shown, if not the best first?"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from birchbark.errors import InputError
from birchbark.index.part import as_number
from birchbark.pipeline.answers.answer import Answer, Hit

MOST_NAMES = 20  # of fields in a message


def sorted_by_field(
    answer: Answer, order: str, known: Collection[str] = (), *, complete: bool = True
) -> Answer:
    """Return the answer with the same hits, in the order of a field of their documents.

    Numbers are compared as numbers and precede everything else, which is compared as text, also in
    descending order. Hits without a value come last; those with equal values stay as they are
    ranked.

    Args:
        answer: What a search returned.
        order: The name of the field, with - in front of it for descending order: `-modified` for
            the newest first.
        known: Fields that no hit need have, such as `Index.keywords`. Defaults to none.
        complete: Whether the answer is the final one. Defaults to True.

    Raises:
        InputError: The name is empty, or the field is not known, and no hit of a final answer has
            it.
    """
    name = order.removeprefix("-")
    if not name:
        raise InputError("no field to sort by", wanted="FIELD or -FIELD", found=repr(order))

    def value(hit: Hit) -> str:
        return hit.document.fields.get(name, "")

    def number(hit: Hit) -> float:
        return as_number(value(hit))

    with_value = [hit for hit in answer.hits if value(hit)]
    if complete and answer.hits and not with_value and name not in known:
        names = sorted({name for hit in answer.hits for name in hit.document.fields})
        wanted = " or ".join([*names[:MOST_NAMES], *(["another"] if names[MOST_NAMES:] else [])])
        raise InputError(f"no hit has the field {name!r} to sort by", wanted=wanted or "no field")
    numbers = [hit for hit in with_value if not math.isnan(number(hit))]
    texts = [hit for hit in with_value if math.isnan(number(hit))]
    without = [hit for hit in answer.hits if not value(hit)]
    descending = order.startswith("-")
    numbers.sort(key=number, reverse=descending)
    texts.sort(key=value, reverse=descending)
    return replace(answer, hits=(*numbers, *texts, *without))
