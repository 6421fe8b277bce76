"""Which engines score pairs, and how does each turn strings into scores?

An engine's `load` takes the model directory and the number of threads, and returns a function that
takes a query and texts and returns a score per text (a probability or log-odds). Peers are used as
documented, and imported on use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peer import Peer
from benchmarks.score_model import PLAIN, QUANTISED

Score = Callable[[str, Sequence[str]], Any]
BUDGET = 512  # padded tokens in a batch of the plain export; the fastest of 256 to 4096
FLASHRANK = "ms-marco-TinyBERT-L-2-v2"  # a name that FlashRank accepts; the weights are ours


@dataclass(frozen=True, slots=True)
class ScoreEngine(Peer):
    """A way to score."""

    load: Callable[[Path, int], Score]


def _birchbark(precision: str) -> Callable[[Path, int], Score]:
    def load(directory: Path, threads: int) -> Score:
        from birchbark.score.load_scorer import load_scorer
        from birchbark.score.precision import Precision
        from birchbark.score.scorer import score_texts

        scorer = load_scorer(directory, threads, precision=Precision(precision))
        return partial(score_texts, scorer)

    return load


def _sentence_transformers(directory: Path, threads: int) -> Score:
    import torch
    from sentence_transformers import CrossEncoder

    torch.set_num_threads(threads)
    model = CrossEncoder(str(directory), device="cpu")

    def score(query: str, texts: Sequence[str]) -> Any:
        return model.predict([(query, text) for text in texts], show_progress_bar=False)

    return score


def _session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        str(path), sess_options=options, providers=["CPUExecutionProvider"]
    )


def _flashrank(directory: Path, threads: int) -> Score:
    """Send one request per query; set threads on the session, since FlashRank has no option."""
    from importlib import import_module

    import onnxruntime

    code = import_module("flashrank.Ranker")
    folder = directory / "flashrank" / FLASHRANK
    folder.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        if path.is_file() and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)
    model = folder / code.model_file_map[FLASHRANK]
    if not model.exists():
        model.symlink_to(directory / PLAIN)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    code.ort.InferenceSession = partial(onnxruntime.InferenceSession, sess_options=options)
    ranker = code.Ranker(FLASHRANK, str(folder.parent), log_level="WARNING")

    def score(query: str, texts: Sequence[str]) -> Any:
        passages = [{"id": i, "text": text} for i, text in enumerate(texts)]
        ranked = ranker.rerank(code.RerankRequest(query, passages))
        return [p["score"] for p in sorted(ranked, key=lambda p: p["id"])]

    return score


def _plain(name: str) -> Callable[[Path, int], Score]:
    """Run a plain export on texts sorted by length, in batches of at most BUDGET padded tokens."""

    def load(directory: Path, threads: int) -> Score:
        from tokenizers import Tokenizer

        session = _session(directory / name, threads)
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(512)

        def score(query: str, texts: Sequence[str]) -> Any:
            encoded = tokenizer.encode_batch_fast([(query, text) for text in texts])
            out = np.empty(len(encoded), np.float32)
            for rows in _batches([len(e.ids) for e in encoded]):
                out[rows] = session.run(None, _padded([encoded[i] for i in rows]))[0][:, 0]
            return out

        return score

    return load


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    batches: list[list[int]] = [[]]
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches[-1] and (len(batches[-1]) + 1) * lengths[i] > BUDGET:
            batches.append([])
        batches[-1].append(i)
    return batches


def _padded(encoded: Sequence[Any]) -> dict[str, Any]:
    size = (len(encoded), max(len(e.ids) for e in encoded))
    feed = {n: np.zeros(size, np.int64) for n in ("input_ids", "attention_mask", "token_type_ids")}
    for row, e in enumerate(encoded):
        feed["input_ids"][row, : len(e.ids)] = e.ids
        feed["attention_mask"][row, : len(e.ids)] = 1
        feed["token_type_ids"][row, : len(e.ids)] = e.type_ids
    return feed


BASE = "sentence-transformers"
SCORE_ENGINES = {
    "birchbark fp32": ScoreEngine(("birchbark",), _birchbark("fp32")),
    "birchbark int8": ScoreEngine(("birchbark",), _birchbark("int8")),
    BASE: ScoreEngine((BASE, "torch"), _sentence_transformers),
    "FlashRank": ScoreEngine(("flashrank", "torch"), _flashrank),
    "ONNX Runtime, plain export": ScoreEngine(("onnxruntime", "torch"), _plain(PLAIN)),
    "ONNX Runtime, its dynamic int8": ScoreEngine(("onnxruntime", "torch"), _plain(QUANTISED)),
}
