"""How are data sets read, split for validation and tokenised?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.collection.data_files import data_fingerprint, data_path
from birchbark.collection.intake import Intake
from birchbark.errors import InputError
from birchbark.pairs.holdout import split_for_validation
from birchbark.pairs.pair_table import PairTable
from birchbark.pairs.sources import split_into_chunks
from birchbark.records import Document, Pair
from birchbark.segment.by_name import parse_segmenter
from birchbark.segment.split_long import split_long
from birchbark.train.config import DataSetConfig, TrainingConfig
from birchbark.train.pair_inputs import InputLayout, PairInputs

Log = Callable[[str], None]
MAX_COMPARED = 10  # texts per query that duoBERT compares with each other in validation


@dataclass(frozen=True, slots=True, eq=False)
class TokenisedDataSet:
    """A data set, ready for training.

    targets: an array (pairs,) float32 per loss term, with grades or a teacher's log-odds
    (teacher_scores.py).
    heldout_pairs: the pairs for validation.
    facts: what the model card says about the data set.
    """

    config: DataSetConfig
    training_pairs: PairInputs
    targets: tuple[NDArray[np.float32], ...]
    heldout_pairs: PairInputs
    facts: Mapping[str, object] = field(default_factory=dict)


def load_datasets(
    training: TrainingConfig, root: Path, tokenizer: CheckpointTokenizer, log: Log
) -> Iterator[TokenisedDataSet]:
    """Read, split and tokenise the data sets of `training`, whose files lie below `root`.

    Raises InputError for bad records unless they are skipped, for a data set without pairs to train
    on, and if each document has a single passage although the model is PARADE.
    """
    intakes = [config.source.intake() for config in training.data]
    sets = [
        _read_pairs(config, training, root, tokenizer, intake)
        for config, intake in zip(training.data, intakes, strict=True)
    ]
    shares = [config.validation for config in training.data]
    splits = split_for_validation(sets, shares, [c.validation_queries for c in training.data])
    for config, pairs, intake, split in zip(training.data, sets, intakes, splits, strict=True):
        train, heldout = split
        if not train:
            raise InputError("no pairs to train on", where=config.name)
        training_pairs, heldout_pairs = (
            PairInputs.of(
                PairTable.of(part, training.initialisation.parade is not None),
                *(tokenizer, training.max_length, training.query_length),
                max_passages=config.passages or defaults.PASSAGES,
                layout=_layout(training),
            )
            for part in (split_into_chunks(train, config.chunk), heldout)
        )
        used = len(training_pairs.pairs.queries) + len(heldout_pairs.pairs.queries)
        unused = len({pair.query for pair in pairs}) - used
        _check_passages(training, config, training_pairs.pairs)
        _log_pairs(config.name, training_pairs, heldout_pairs, training.max_length, log)
        _log_skipped(config.name, intake, unused, log)
        facts = _source_facts(config, root) | {
            "skipped": len(intake.skipped),
            "queries_left_aside": unused,
            "learnt": training_pairs.counts,
            "held": heldout_pairs.counts,
        }
        targets = (training_pairs.pairs.grades,) * len(config.loss_terms)
        yield TokenisedDataSet(config, training_pairs, targets, heldout_pairs, facts)


def _read_pairs(
    config: DataSetConfig,
    training: TrainingConfig,
    root: Path,
    tokenizer: CheckpointTokenizer,
    intake: Intake,
) -> list[Pair]:
    if config.source.documents:
        token_budget = training.max_length - tokenizer.single_overhead
        documents = config.source.read_documents(root, intake)
        return _segment_pairs(documents, config, intake, token_budget, tokenizer)
    pairs = config.source.read_pairs(root, parse_segmenter(config.segments), intake)
    return _relevant_pairs(pairs, intake, tokenizer) if training.masking else pairs


def _source_facts(config: DataSetConfig, root: Path) -> dict[str, object]:
    files = [
        {"name": Path(name).name, "sha256": data_fingerprint(data_path(root, name))}
        for name in config.files
    ]
    return {"name": config.name, "licence": config.licence, "files": files, "teachers": []}


def _layout(training: TrainingConfig) -> InputLayout:
    if any(config.source.documents for config in training.data):
        return InputLayout.TEXT
    if training.initialisation.duo:
        return InputLayout.TWO_TEXTS
    return InputLayout.SEPARATE if training.initialisation.pooling else InputLayout.PAIR


def _check_passages(training: TrainingConfig, config: DataSetConfig, pairs: PairTable) -> None:
    """Raise InputError for PARADE if each document has a single passage."""
    if training.initialisation.parade and len(pairs.text) == len(pairs):
        raise InputError(
            "each document has one passage, so PARADE has nothing to aggregate",
            where=config.name,
            remedy='segments = "windows:150/50", or files with one row per passage',
        )


def _segment_pairs(
    documents: Iterable[Document],
    config: DataSetConfig,
    intake: Intake,
    token_budget: int,
    tokenizer: CheckpointTokenizer,
) -> list[Pair]:
    """Return a pair per segment of each document, with the doc_id in place of a query.

    Segments longer than `token_budget` are split. Segments without tokens (zero-width characters)
    are left out, and noted in `intake`.
    """
    segmenter, pairs = parse_segmenter(config.segments), []
    for document in documents:
        for parts in split_long(
            segmenter(document), token_budget, tokenizer.encode, tokenizer.spans
        ):
            doc_id = document.doc_id
            for segment, ids in parts:
                if len(ids):
                    pairs.append(Pair(doc_id, doc_id, doc_id, segment.text, 1))
                else:
                    intake.note("text without a token, left out")
    return pairs


def _relevant_pairs(
    pairs: Sequence[Pair], intake: Intake, tokenizer: CheckpointTokenizer
) -> list[Pair]:
    """Return the relevant pairs, except those whose query or text has no tokens.

    Pairs that are left out are noted in `intake`.
    """
    relevant = [pair for pair in pairs if pair.relevance]
    texts = list(dict.fromkeys(text for pair in relevant for text in (pair.query, pair.text)))
    empty = {t for t, ids in zip(texts, tokenizer.encode(texts), strict=True) if not len(ids)}
    usable = [pair for pair in relevant if not {pair.query, pair.text} & empty]
    for note, count in (
        ("pair that is not relevant, left out", len(pairs) - len(relevant)),
        ("pair whose query or text has no token, left out", len(relevant) - len(usable)),
    ):
        if count:
            intake.notes[note] += count
    return usable


def _log_pairs(
    name: str, training_pairs: PairInputs, heldout_pairs: PairInputs, max_length: int, log: Log
) -> None:
    for inputs, use in ((training_pairs, "to train on"), (heldout_pairs, "to validate on")):
        if not (pairs := len(inputs.pairs)):
            continue
        details = ""
        if (passages := len(inputs.pairs.text)) > pairs:
            details += f", {passages / pairs:.1f} passages each"
        if truncated := inputs.truncated:
            details += f"; {truncated:,} are truncated at {max_length} tokens"
        if shortened := inputs.shortened:
            details += f"; of {shortened:,} only the first {inputs.max_passages} passages are read"
        texts_only = inputs.layout is InputLayout.TEXT
        unit, group = ("texts", "documents") if texts_only else ("pairs", "queries")
        log(f"{name}: {pairs:,} {unit} of {len(inputs.pairs.queries):,} {group} {use}{details}")
    not_compared = sum(
        max(0, len(indices) - MAX_COMPARED) for indices in heldout_pairs.pairs.by_query
    )
    if heldout_pairs.layout is InputLayout.TWO_TEXTS and not_compared:
        log(
            f"{name}: {not_compared:,} of them are ignored in validation: "
            f"at most {MAX_COMPARED} texts per query are compared"
        )


def _log_skipped(name: str, intake: Intake, unused_queries: int, log: Log) -> None:
    """Log which queries and records are used neither for training nor for validation."""
    if unused_queries:
        log(f"{name}: {unused_queries:,} queries are held out, but not used for validation")
    if intake.skipped:
        log(f"{name}: {len(intake.skipped)} bad records were skipped")
    for note, count in intake.notes.most_common():
        log(f"{name}: {note} ({count:,} times)")
