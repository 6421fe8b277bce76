"""How are data sets read, split for validation and tokenised?"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.artifact import files_in
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.collection.data_files import KnownFiles, data_path
from birchbark.collection.folds import read_folds
from birchbark.collection.ir_datasets import dataset_id
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.pairs.blocks import in_blocks
from birchbark.pairs.holdout import normalised, split_for_validation
from birchbark.pairs.pair_table import PairTable
from birchbark.pairs.sources import split_into_chunks
from birchbark.records import Document, Pair
from birchbark.segment.by_name import parse_segmenter, splitter_version
from birchbark.segment.split_long import split_long
from birchbark.train.config import DataSetConfig, TrainingConfig
from birchbark.train.pair_inputs import InputLayout, PairInputs
from birchbark.train.prepared_pairs import (
    BLOCK,
    MANIFEST,
    PreparedPairs,
    folder_name,
    open_pairs,
    write_pairs,
)
from birchbark.train.training_folder import explained_write_errors

Log = Callable[[str], None]
FILES = "files.json"  # in the folder of token ids
MAX_COMPARED = 10  # texts per query that duoBERT compares with each other in validation


@dataclass(frozen=True, slots=True, eq=False)
class TokenisedDataSet:
    """A data set, ready for training.

    targets: an array (pairs,) float32 per loss term, with grades or a teacher's log-odds
    (teacher_scores.py).
    heldout_pairs: the pairs for validation.
    folder: where the token ids of its training pairs are.
    facts: what the model card says about the data set.
    """

    config: DataSetConfig
    training_pairs: PairInputs
    targets: tuple[NDArray[np.float32], ...]
    heldout_pairs: PairInputs
    folder: Path
    facts: Mapping[str, object] = field(default_factory=dict)


def load_datasets(
    training: TrainingConfig,
    root: Path,
    tokenizer: CheckpointTokenizer,
    log: Log,
    tokens: Path,
) -> list[TokenisedDataSet]:
    """Read, split and tokenise the data sets of `training`, whose files lie below `root`.

    tokens: the folder where token ids are stored, or will be. Raises InputError for bad records
    unless they are skipped, for a data set without pairs to train on, and if each document has a
    single passage although the model is PARADE; ArtifactError if stored token ids are damaged.
    """
    unused = held_out_texts(training, root)
    files = KnownFiles(tokens / FILES)
    prepared = [
        _prepare(config, training, root, tokenizer, tokens, files, log) for config in training.data
    ]
    queries = [whole.table.queries for whole, _ in prepared]
    if unused:
        found = {normalised(query) for own in queries for query in own} & unused
        log(f"held out: {len(found):,} of {len(unused):,} queries are in the data")
        if training.held_out and training.held_out.folds and not found:
            raise InputError(
                "no query of the fold that is held out is in the data",
                where=f"{training.path}: held_out",
                remedy="name the file of the queries from whose texts the pairs were made",
            )
    shares = [config.validation for config in training.data]
    limits = [config.validation_queries for config in training.data]
    splits = split_for_validation(queries, shares, limits, unused)
    datasets = []
    for config, (whole, chunks), split in zip(training.data, prepared, splits, strict=True):
        if not split[0].any():
            raise InputError("no pairs to train on", where=config.name)
        training_pairs, heldout_pairs = (
            PairInputs.of(
                pairs,
                tokenizer,
                training.max_length,
                training.query_length,
                chosen=chosen,
                max_passages=config.passages or defaults.PASSAGES,
                layout=_layout(training),
            )
            for pairs, chosen in zip((chunks, whole), split, strict=True)
        )
        used = len(training_pairs.pairs.queries) + len(heldout_pairs.pairs.queries)
        left_aside = len(whole.table.queries) - used
        _check_passages(training, config, training_pairs.pairs)
        facts = (
            _source_facts(config, root, files)
            | _held_out_facts(training, root, files)
            | {
                "skipped": whole.skipped,
                "queries_left_aside": left_aside,
                "learnt": _logged(config.name, training_pairs, training.max_length, "train", log),
                "held": _logged(config.name, heldout_pairs, training.max_length, "validate", log),
            }
        )
        _log_skipped(config.name, whole, left_aside, log)
        targets = (training_pairs.pairs.grades,) * len(config.loss_terms)
        datasets.append(
            TokenisedDataSet(config, training_pairs, targets, heldout_pairs, chunks.folder, facts)
        )
    return datasets


def held_out_texts(training: TrainingConfig, root: Path) -> frozenset[str]:
    """Return the texts, with single blanks, of the queries that no data set may use.

    Raises InputError if there is no such fold, or the file lacks one of its queries.
    """
    held_out = training.held_out
    if held_out is None:
        return frozenset()
    path = data_path(root, held_out.queries)
    texts = {query.query_id: normalised(query.text) for query in read_queries(path)}
    if held_out.fold is None:
        return frozenset(texts.values())
    folds = read_folds(data_path(root, held_out.folds))
    if held_out.fold > len(folds):
        raise InputError(
            "no such fold",
            where=f"{training.path}: held_out.fold",
            wanted=f"1 to {len(folds)}, as in {held_out.folds}",
            found=str(held_out.fold),
        )
    fold = folds[held_out.fold - 1]
    if missing := [query_id for query_id in fold if query_id not in texts]:
        raise InputError(
            f"queries of fold {held_out.fold} are missing",
            where=str(path),
            found=f"no {', '.join(missing[:3])}" + (" and others" if len(missing) > 3 else ""),
        )
    return frozenset(texts[query_id] for query_id in fold)


def _prepare(
    config: DataSetConfig,
    training: TrainingConfig,
    root: Path,
    tokenizer: CheckpointTokenizer,
    tokens: Path,
    files: KnownFiles,
    log: Log,
) -> tuple[PreparedPairs, PreparedPairs]:
    """Return the pairs of a data set, and those with texts in chunks, which are trained on.

    Both have the same queries in the same order.
    """
    source, documents = config.source, training.initialisation.parade is not None
    segmenter = parse_segmenter(config.segments)
    settings = {
        "files": [files.fingerprint(data_path(root, name)) for name in config.files],
        "names": [_names(data_path(root, name)) for name in config.files],
        "source": dataclasses.asdict(replace(source, files=())),
        "segments": [config.segments, splitter_version(segmenter)],
        "masking": training.masking is not None,
        "length": None if source.has_queries else training.max_length,
        "documents": documents,
    }

    def prepare(words: int | None) -> PreparedPairs:
        folder = tokens / folder_name({**settings, "chunk": words}, tokenizer)
        if not (folder / MANIFEST).exists():
            intake = source.intake()
            pairs = split_into_chunks(_pairs(config, training, root, tokenizer, intake), words)
            log(f"{config.name}: tokenising, once for all runs with {tokens}")
            with explained_write_errors(tokens):
                write_pairs(pairs, folder, tokenizer, intake, documents=documents)
        return open_pairs(folder)

    whole = prepare(None)
    return whole, whole if config.chunk is None else prepare(config.chunk)


def _names(path: Path) -> list[str]:
    """Return what decides how a file is read: its suffixes; of a folder, the names of its files.

    Of `ir_datasets:ID`, return that itself.
    """
    if dataset_id(path):
        return [str(path)]
    if path.is_dir():
        return [file.relative_to(path).as_posix() for file in files_in(path)]
    return path.suffixes


def _pairs(
    config: DataSetConfig,
    training: TrainingConfig,
    root: Path,
    tokenizer: CheckpointTokenizer,
    intake: Intake,
) -> Iterator[Pair]:
    """Yield the pairs of a data set, as they are trained on."""
    if not config.source.has_queries:
        token_budget = training.max_length - tokenizer.single_overhead
        documents = config.source.read_documents(root, intake)
        return _segment_pairs(documents, config, intake, token_budget, tokenizer)
    pairs = config.source.read_pairs(root, parse_segmenter(config.segments), intake)
    return _relevant_pairs(pairs, intake, tokenizer) if training.masking else pairs


def _source_facts(config: DataSetConfig, root: Path, known: KnownFiles) -> dict[str, object]:
    files = _file_facts(config.files, root, known)
    return {"name": config.name, "licence": config.licence, "files": files, "teachers": []}


def _held_out_facts(training: TrainingConfig, root: Path, known: KnownFiles) -> dict[str, object]:
    if training.held_out is None:
        return {}
    return {"held_out": _file_facts(training.held_out.files, root, known)}


def _file_facts(names: Iterable[str], root: Path, known: KnownFiles) -> list[dict[str, str]]:
    return [
        {"name": Path(name).name, "sha256": known.fingerprint(data_path(root, name))}
        for name in names
    ]


def _layout(training: TrainingConfig) -> InputLayout:
    if not all(config.source.has_queries for config in training.data):
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
) -> Iterator[Pair]:
    """Yield a pair per segment of each document, with the doc_id in place of a query.

    Segments longer than `token_budget` are split. Segments without tokens (zero-width characters)
    are left out, and noted in `intake`.
    """
    segmenter = parse_segmenter(config.segments)
    for document in documents:
        for parts in split_long(
            segmenter(document), token_budget, tokenizer.encode, tokenizer.spans
        ):
            doc_id = document.doc_id
            for segment, ids in parts:
                if len(ids):
                    yield Pair(doc_id, doc_id, doc_id, segment.text, 1)
                else:
                    intake.note("text without a token, left out")


def _relevant_pairs(
    pairs: Iterable[Pair], intake: Intake, tokenizer: CheckpointTokenizer
) -> Iterator[Pair]:
    """Yield the relevant pairs, except those whose query or text has no tokens.

    Pairs that are left out are noted in `intake`.
    """
    for block in in_blocks(pairs, BLOCK):
        relevant = [pair for pair in block if pair.relevance]
        texts = list(dict.fromkeys(text for pair in relevant for text in (pair.query, pair.text)))
        empty = {t for t, ids in zip(texts, tokenizer.encode(texts), strict=True) if not len(ids)}
        usable = [pair for pair in relevant if not {pair.query, pair.text} & empty]
        for note, count in (
            ("pair that is not relevant, left out", len(block) - len(relevant)),
            ("pair whose query or text has no token, left out", len(relevant) - len(usable)),
        ):
            if count:
                intake.notes[note] += count
        yield from usable


def _logged(name: str, inputs: PairInputs, max_length: int, use: str, log: Log) -> dict[str, int]:
    """Log how many pairs there are, and how many are truncated; return the counts of the inputs.

    use: what they are used for, `train` or `validate`.
    """
    counts = inputs.counts
    if not (pairs := counts["pairs"]):
        return counts
    details = ""
    if passages := counts.get("passages"):
        details += f", {passages / pairs:.1f} passages each"
    if truncated := counts["cut"]:
        details += f"; {truncated:,} are truncated at {max_length} tokens"
    if shortened := counts.get("shortened"):
        details += f"; of {shortened:,} only the first {inputs.max_passages} passages are read"
    texts_only = inputs.layout is InputLayout.TEXT
    unit, group = ("texts", "documents") if texts_only else ("pairs", "queries")
    log(f"{name}: {pairs:,} {unit} of {counts['queries']:,} {group} to {use} on{details}")
    if use == "validate" and inputs.layout is InputLayout.TWO_TEXTS:
        sizes = np.diff(inputs.pairs.by_query.ends, prepend=0)  # (queries,)
        if not_compared := int(np.maximum(0, sizes - MAX_COMPARED).sum()):
            log(
                f"{name}: {not_compared:,} of them are ignored in validation: "
                f"at most {MAX_COMPARED} texts per query are compared"
            )
    return counts


def _log_skipped(name: str, pairs: PreparedPairs, unused_queries: int, log: Log) -> None:
    """Log which queries and records are used neither for training nor for validation."""
    if unused_queries:
        log(f"{name}: {unused_queries:,} queries are held out, but not used for validation")
    if pairs.skipped:
        log(f"{name}: {pairs.skipped} bad records were skipped")
    for note, count in Counter(pairs.notes).most_common():
        log(f"{name}: {note} ({count:,} times)")
