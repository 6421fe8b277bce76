"""What do commands say of vectors and graphs that an index lacks?"""

from __future__ import annotations

from pathlib import Path
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
    """Print how many documents lack vectors, and how many will have none, if any has vectors."""
    from birchbark.pipeline.stored.precompute import WHOLE_DOCUMENT
    from birchbark.pipeline.stored.vector_sets import default_bits, vector_sets
    from birchbark.pipeline.upkeep.update_index import documents_without_vectors

    for name in vector_sets(index.attachments):
        missing, left_out = documents_without_vectors(index, name)
        config = index.attachments[name].config
        if missing:
            options = f"--vectors {config.get('model')} --segments {config.get('segments')}"
            if pooling := config.get("pooling"):
                options += f" --pooling {pooling}"
            if config.get("bits") != default_bits(index.attachments[name]):
                options += f" --vector-bits {config.get('bits')}"
            notify(
                f"note: no {name} yet for {plural(missing, 'document')}: "
                f"birchbark index attach {index.directory} {options}"
            )
        if left_out:
            notify(
                f"note: no {name} for {plural(left_out, 'document')} without text or with over "
                f"{WHOLE_DOCUMENT:,} characters; searches choose their segments by static vectors "
                "or query terms"
            )


def report_rounding(index: Path, precomputation: Precomputation) -> None:
    """Print how far scores of the first documents' segments change, if vectors are rounded."""
    from birchbark.index.index import Index

    if precomputation.rounding is None:
        return
    error = precomputation.rounding(Index(index))
    if not error.texts:
        return
    notify(
        f"rounding to {precomputation.schema.config['bits']} bits changes scores by at most "
        f"{error.largest:.1g}, on average by {error.mean:.1g} ({plural(error.texts, 'segment')}, "
        "their beginnings as queries)"
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
