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
    size only the data tells, are named.
    """
    if not recipe.demonstration:
        return ""
    largest, whole = 0, dict[str, None]()
    for chain in recipe.experiment.chains.values():
        largest = max(largest, sum(count_texts(training) or 0 for training in chain))
        for training in chain:
            if count_texts(training) is None:
                whole |= dict.fromkeys(unlimited(training))
    size = f"{largest:,} texts" + (f" and all of {' and '.join(whole)}" if whole else "")
    return NOTE.format(size=size, paper=recipe.demonstration)
