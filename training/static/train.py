"""Train the static embedding: a vector for each token, whose sum stands for a text's embedding.

    python training/static/train.py ../shared/data/qa --work static-work --output birchbark-static

Questions, passages and sentences of passages are embedded by the default embedding; the table of
token vectors is then fitted so that the sum of a text's tokens points into the same direction (the
loss is 1 − cosine). Nobody's judgments are used. Vectors have fewer dimensions than the
embedding's: those with the most variance. Before training, a token's vector is that of the token
alone, as the embedding sees it, times a/(a + its share of all tokens), as in smooth inverse
frequency (Arora et al. 2017). The idea is that of Model2Vec's tokenlearn.

Embedding 210,000 texts takes ten minutes on two cores with AVX-512, training four. Vectors are kept
in the folder WORK, so that an interrupted run goes on. Needs torch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import torch
from torch.nn.functional import embedding_bag, normalize

import birchbark as bb
from birchbark.artifact import json_checksum
from birchbark.checkpoint.locate import locate
from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.checkpoint.static_embedding import write_static_embedding
from birchbark.segment.sentences import sentences

TEACHER = "birchbark-embedding-l6"
DIMENSIONS = 240  # so that the table and its tokeniser have less than 8 MB
COMMON = 1e-3  # the share of all tokens at which a token counts half
BLOCK = 4_000  # texts that are embedded between two writes
QUESTIONS, NEAREST = 1_000, 100  # compared to fit the scale
CARD = Path(__file__).with_name("CARD.md")
BATCH, WARMUP, RATE, BETAS = 1024, 100, 2e-3, (0.9, 0.99)


@click.command()
@click.argument("data", type=Path)
@click.option("--count", default=70_000, help="Texts of each kind, at most.")
@click.option("--steps", default=4_000)
@click.option("--work", type=Path, required=True, help="Folder for vectors.")
@click.option("--output", type=Path, required=True)
def main(data: Path, count: int, steps: int, work: Path, output: Path) -> None:
    """Embed texts by the default embedding, and fit a table of token vectors to them.

    DATA holds folders with queries.tsv and passages.jsonl.gz.
    """
    random = np.random.default_rng(1)
    scorer = bb.load_scorer(TEACHER, precision="int8")
    work.mkdir(parents=True, exist_ok=True)
    sample = sample_texts(data, count, random)
    targets = np.concatenate([embed(scorer, kind, work / n) for n, kind in sample.items()])
    everything = [text for kind in sample.values() for text in kind]
    alone = embed(scorer, None, work / "tokens")
    some = random.choice(len(targets), min(len(targets), 20_000))
    projection = np.linalg.svd(targets[some], full_matrices=False)[2][:DIMENSIONS].T
    ids = scorer.encode(everything)
    shares = np.bincount(np.concatenate(ids), minlength=len(alone)) + 1.0
    shares /= shares.sum()
    table = unit(alone @ projection) * (0.1 * COMMON / (COMMON + shares))[:, None]
    table = fit(table.astype(np.float32), ids, unit(targets @ projection), steps, random)
    asked = len(sample["questions"])
    scale = fit_scale(scorer.checkpoint.scale, table, ids, targets, asked, random)
    card = CARD.read_text() if CARD.exists() else ""
    write_static_embedding(output, table, locate(TEACHER) / "tokenizer.json", scale, card)


def sample_texts(data: Path, count: int, random: np.random.Generator) -> dict[str, list[str]]:
    """Return random questions, passages, and a sentence of each passage."""
    asked = [q.text for path in sorted(data.glob("*/queries.tsv")) for q in bb.read_queries(path)]
    pool = sorted(data.glob("*/passages.jsonl.gz"))
    documents = [document for path in pool for document in bb.read_collection(path)]
    few = random.choice(len(documents), min(count, len(documents)), replace=False)
    passages = [documents[i] for i in few]
    parts = [random.choice([s.text for s in sentences(document)] or [""]) for document in passages]
    return {
        "questions": [asked[i] for i in random.permutation(len(asked))[:count]],
        "passages": [document.contents for document in passages],
        "sentences": list(map(str, parts)),
    }


def embed(scorer: bb.Scorer, texts: Sequence[str] | None, path: Path) -> np.ndarray:
    """Return the vectors (n, hidden) of texts, or of all single tokens.

    They are kept in a file beside `path`, whose name depends on the texts and the scorer.
    """
    inputs = {"scorer": scorer.fingerprint, "texts": texts and list(texts)}
    path, name = path.with_name(f"{path.name}-{json_checksum(inputs)[:12]}.npy"), path.name
    done = [np.load(path)] if path.exists() else []
    ids = [np.array([i], np.int32) for i in range(scorer.vocabulary)]
    if texts is not None:
        ids = [one[: scorer.token_budget("")] for one in scorer.encode(texts)]
    count, started = sum(map(len, done)), time.monotonic()
    for begin in range(count, len(ids), BLOCK):
        vectors = scorer.embed(ids[begin : begin + BLOCK], keep=False)
        done.append(vectors.astype(np.float16))
        np.save(path, np.concatenate(done))
        seconds = time.monotonic() - started
        click.echo(f"{name}: {begin + len(vectors):,} of {len(ids):,} in {seconds:.0f} s")
    return np.concatenate(done).astype(np.float32)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (n, d) of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def fit(
    table: np.ndarray,
    ids: Sequence[np.ndarray],
    targets: np.ndarray,
    steps: int,
    random: np.random.Generator,
) -> np.ndarray:
    """Return the table (V, d) after training: each text's sum points to its target (n, d)."""
    weights = torch.nn.Parameter(torch.tensor(table))
    wanted = torch.tensor(targets.astype(np.float32))
    optimiser = torch.optim.Adam([weights], lr=RATE, betas=BETAS)
    mean = 0.0
    for step in range(steps):
        rate = RATE * min(1, (step + 1) / WARMUP) * (1 - step / steps)
        for group in optimiser.param_groups:
            group["lr"] = rate
        drawn = random.choice(len(ids), min(BATCH, len(ids)), replace=False)
        flat = torch.tensor(np.concatenate([ids[i] for i in drawn]).astype(np.int64))
        begins = torch.tensor(np.cumsum([0, *(len(ids[i]) for i in drawn[:-1])]))
        sums = normalize(embedding_bag(flat, weights, begins, mode="sum"), dim=1)
        cosine = (sums * wanted[drawn]).sum(1).mean()
        optimiser.zero_grad()
        (1 - cosine).backward()
        optimiser.step()
        mean += (cosine.item() - mean) * (0.02 if step else 1)
        if step % 500 == 499:
            click.echo(f"step {step + 1:,}: cosine {mean:.4f}")
    return weights.detach().numpy()


def fit_scale(
    scale: ScoreScale,
    table: np.ndarray,
    ids: Sequence[np.ndarray],
    targets: np.ndarray,
    asked: int,
    random: np.random.Generator,
) -> ScoreScale:
    """Return the scale on which the table's scores are those of the teacher, by least squares.

    Compared are QUESTIONS random questions with the NEAREST other texts of each, by the table.
    scale: the teacher's. asked: how many of the first texts are questions.
    """
    vectors = unit(np.stack([table[one].sum(axis=0) for one in ids])).astype(np.float32)
    chosen = random.choice(asked, min(asked, QUESTIONS), replace=False)
    cosines = vectors[chosen] @ vectors[asked:].T
    nearest = np.argsort(-cosines, axis=1)[:, :NEAREST]
    by_table = np.take_along_axis(cosines, nearest, axis=1)
    by_teacher = np.einsum("qh,qnh->qn", targets[chosen], targets[asked:][nearest])
    slope, base = np.polyfit(by_table.ravel(), by_teacher.ravel(), 1)
    shift, temperature = (scale.shift - base) / slope, scale.temperature / slope
    click.echo(f"shift {shift:.3f}, temperature {temperature:.3f}")
    return ScoreScale(round(float(shift), 3), round(float(temperature), 3), stated=True)


if __name__ == "__main__":
    main()
