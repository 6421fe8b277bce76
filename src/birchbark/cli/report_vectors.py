"""What do commands say of vectors and graphs that an index lacks?"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from birchbark.cli.console import notify
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.index.index import Index
    from birchbark.pipeline.stored.precompute import Precomputation


def report_vectors(index: Path) -> None:
    """Print what is missing of the vectors and graphs of the index in this directory."""
    from birchbark.index.index import Index

    opened = Index(index)
    report_missing_vectors(opened)
    report_missing_graphs(opened)


def report_missing_vectors(index: Index) -> None:
    """Print how many documents lack vectors, if any has some."""
    from birchbark.pipeline.stored.vector_sets import count_missing, default_bits, vector_sets

    for name in vector_sets(index.attachments):
        missing = count_missing(index, name)
        config = index.attachments[name].config
        if missing:
            options = (
                f"--vectors {quote(str(config.get('model')))} --segments {config.get('segments')}"
            )
            if pooling := config.get("pooling"):
                options += f" --pooling {pooling}"
            if config.get("bits") != default_bits(index.attachments[name]):
                options += f" --vector-bits {config.get('bits')}"
            notify(
                f"note: no {name} yet for {plural(missing, 'document')}: "
                f"birchbark index attach {quote(str(index.directory))} {options}"
            )


def report_rounding(index: Path, precomputation: Precomputation) -> None:
    """Print how far stored vectors change the scores of the first documents' segments."""
    from birchbark.index.index import Index

    if precomputation.rounding is None:
        return
    error = precomputation.rounding(Index(index))
    if not error.texts:
        return
    notify(
        f"stored vectors change scores by at most {error.largest:.1g}, on average by "
        f"{error.mean:.1g}, compared with float32 ({plural(error.texts, 'segment')}, their "
        "beginnings as queries)"
    )


def report_missing_graphs(index: Index) -> None:
    """Print a note if vectors are searched exhaustively because faiss is not installed."""
    from birchbark.pipeline.stored.vector_sets import searched_sets
    from birchbark.pipeline.upkeep.update_index import vectors_without_graph

    sets = searched_sets(index.attachments)
    if vectors := sum(vectors_without_graph(index, name) for name in sets):
        notify(
            f"note: searches compare the query with all {vectors:,} vectors; "
            "pip install 'birchbark[dense]' makes them faster"
        )
