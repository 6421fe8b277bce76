"""Does a study train far less than its paper, and what does its page say about it?"""

from __future__ import annotations

from birchbark_studies.plan import count_texts, unlimited
from birchbark_studies.recipe import Recipe

NOTE = (
    "A demonstration: a model is trained here on at most {size}; {paper}. The tables show how the "
    "method works, and not how much it brings."
)


def demonstration_note(recipe: Recipe) -> str:
    """Return the sentence that stands above the tables; empty if the recipe says nothing.

    It counts the texts of all training runs of a model. Runs that read all of their data, whose
    size only the data tells, are named; models without such a run are told apart.
    """
    if not recipe.demonstration:
        return ""
    largest: dict[tuple[str, ...], int] = {}  # data that a model reads whole → texts of the rest
    for chain in recipe.experiment.chains.values():
        uncounted = (training for training in chain if count_texts(training) is None)
        whole = tuple(dict.fromkeys(name for training in uncounted for name in unlimited(training)))
        count = sum(count_texts(training) or 0 for training in chain)
        largest[whole] = max(count, largest.get(whole, 0))
    size = " or ".join(_size(whole, count) for whole, count in sorted(largest.items()))
    return NOTE.format(size=size, paper=recipe.demonstration)


def _size(whole: tuple[str, ...], count: int) -> str:
    of_rest = (f"{count:,} texts",) if count or not whole else ()
    return " and ".join((*of_rest, *(f"all of {name}" for name in whole)))
