"""Which options require other options, and which exclude each other?

A rule applies only to commands that have all the options it names: `--segments` requires `--tokens`
or `--vectors` in `birchbark index attach`, but nothing in `birchbark pairs`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from birchbark.errors import InputError

NEEDS: Mapping[str, tuple[str, ...]] = {  # option → options, at least one of which must be set
    "vector_bits": ("vectors",),
    "pooling": ("vectors",),
    "segments": ("tokens", "vectors"),
    "ranks": ("run_file",),
    "negatives": ("run_file",),
    "all_ranked": ("run_file",),
    "run_file": ("negatives", "all_ranked"),
    "scoring_model": ("best_segments",),
    "device": ("best_segments",),
    "best": ("evidence",),
    "port": ("judge",),
    "insecure": ("writable",),
    "replace": ("target",),
}
NEEDS_VALUE: Mapping[str, tuple[str, tuple[str, ...]]] = {  # option → (other option, its values)
    "rank_constant": ("fused_by", ("ranks",)),
    "scale": ("fused_by", ("scores",)),
    "vocabulary": ("analyzer", ("wordpiece", "porter+wordpiece")),
}
EXCLUDES: Mapping[str, tuple[str, ...]] = {  # option → options that it excludes
    "all_ranked": ("negatives", "random_negatives"),
    "as_csv": ("as_json", "as_markdown"),
    "as_markdown": ("as_json",),
    "per_query": ("as_json", "grades"),
    "count": ("queries",),
}


def check_options(
    given: Collection[str], values: Mapping[str, Any], spell: Callable[[str], str] = str
) -> None:
    """Raise InputError if an option has no effect or excludes another.

    given: names of the options that the user set. values: the value of every option, set by the
    user or by default. spell: returns an option's name as users write it.
    """
    for name in given:
        _check_needs(name, values, spell)
        for other in EXCLUDES.get(name, ()):
            if other in given:
                raise InputError(f"{spell(name)} cannot be combined with {spell(other)}")


def _check_needs(name: str, values: Mapping[str, Any], spell: Callable[[str], str]) -> None:
    needs = NEEDS.get(name, ())
    if needs and values.keys() >= set(needs) and not any(values[other] for other in needs):
        raise InputError(f"{spell(name)} has no effect without {' or '.join(map(spell, needs))}")
    other, wanted = NEEDS_VALUE.get(name, ("", ()))
    if other in values and values[other] not in wanted:
        is_given = values[other] is not None
        which = f"with {spell(other)} {values[other]}" if is_given else f"without {spell(other)}"
        raise InputError(
            f"{spell(name)} has no effect {which}", wanted=" or ".join(map(str, wanted))
        )
