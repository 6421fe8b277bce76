"""Does the benchmark of large trainings write real pairs, and is its report right?"""

from __future__ import annotations

from pathlib import Path

from benchmarks.training_size import report, write_pairs
from birchbark.collection.parsing.intake import Intake
from birchbark.pairs.read import read_pairs

FEW = {"first_step": 5.0, "peak_gb": 1.5, "pairs_per_second": 20.0}


def test_pairs_can_be_read(tmp_path: Path) -> None:
    """The first of ten texts of each query is relevant; all texts are distinct."""
    source = tmp_path / "prose"
    source.mkdir()
    words = " ".join(chr(97 + n % 26) * (1 + n % 7) for n in range(999))
    (source / "a.txt").write_text(f"{words}.\n\n{words}.")
    path = write_pairs(tmp_path / "p.tsv", 25, 1, source)
    pairs = list(read_pairs(path, Intake()))
    assert [pair.relevance for pair in pairs] == ([1] + [0] * 9) * 2 + [1] + [0] * 4
    assert len({pair.query for pair in pairs}) == 3
    assert len({pair.text for pair in pairs}) == 25


def test_the_report_compares_with_few_pairs() -> None:
    """Memory is what many pairs add; a target that is missed says so."""
    figures = {
        "machine": {"processor": "x", "cores": 2, "memory_gb": 1, "python": "3"},
        "pairs": 1_000_000,
        "megabytes": 400.0,
        "versions": {"birchbark": "1", "Trainer": "2"},
        "missing": ["CrossEncoderTrainer"],
        "rows": {
            "birchbark": {
                "few": FEW,
                "first": FEW | {"first_step": 80.0, "peak_gb": 1.75},
                "again": FEW | {"first_step": 11.0, "peak_gb": 1.5},
            },
            "Trainer": {"few": FEW, "first": FEW, "again": FEW},
        },
    }
    table = report(figures)
    assert "| birchbark (1) | 80.0 | 11.0 | 0.25 | 0.00 | 20.0 |" in table
    assert "| memory beside the model, GB, at most | 1 | 0.25 | met |" in table
    assert "| first step, tokens stored, s, at most | 10 | 11.00 | missed |" in table
    assert "CrossEncoderTrainer is not installed" in table
