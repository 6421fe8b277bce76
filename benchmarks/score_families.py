"""How fast are models of other families than BERT scored, compared with transformers?

    python -m benchmarks.score_families --output benchmarks/RESULTS-SCORE-FAMILIES.md

Models have random weights and the size of MiniLM: six layers of 384, as many weights per layer.
Every engine gets token ids of equal length, so that neither pads, and runs on one core. Rounds are
interleaved.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.first_stage import machine

SIZES: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "num_labels": 1,
}
SPECIAL = {"bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
FAMILIES: dict[str, dict[str, Any]] = {
    "Bert": SIZES,
    "ModernBert": SIZES | SPECIAL | {"intermediate_size": 1024},  # gated: three matrices, not two
    "DebertaV2": SIZES
    | {
        "relative_attention": True,
        "position_buckets": 256,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
    },
}
NAMES = {"Bert": "BERT", "ModernBert": "ModernBERT", "DebertaV2": "DeBERTa v3"}
WORKLOADS = ((35, 64), (208, 16))  # tokens per input, and inputs
Score = Callable[[Any], Any]


@click.command()
@click.option("--rounds", default=7, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(rounds: int, output: Path | None) -> None:
    """Measure how fast each family is scored."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for family, settings in FAMILIES.items():
            engines = load(Path(folder) / family, family, settings)
            for tokens, count in WORKLOADS:
                ids = np.random.default_rng(0).integers(5, SIZES["vocab_size"], (count, tokens))
                rows.append((family, tokens, *measure(engines, ids, rounds)))
                click.echo(f"{family}, {tokens} tokens: done", err=True)
    text = report(rows)
    if output:
        output.write_text(text)
    else:
        click.echo(text, nl=False)


def load(directory: Path, family: str, settings: dict[str, Any]) -> dict[str, Score]:
    """Write a model of `family`; return the engines that score its inputs."""
    import torch
    import transformers

    from birchbark.checkpoint.checkpoint import Checkpoint
    from birchbark.score.precision import Precision
    from birchbark.score.session import OnnxSession

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**settings)
    model = getattr(transformers, f"{family}ForSequenceClassification")(config).eval()
    model.save_pretrained(directory)
    checkpoint = Checkpoint.open(directory)

    def peer(ids: Any) -> Any:
        with torch.inference_mode():
            tokens = torch.from_numpy(ids)
            return model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits[:, 0]

    def ours(session: OnnxSession, ids: Any) -> Any:
        return session.run(list(ids), list(np.zeros_like(ids)))

    precisions = (Precision.FP32, Precision.INT8)
    sessions = {
        f"birchbark {p.value}": partial(ours, OnnxSession(checkpoint, 1, precision=p))
        for p in precisions
    }
    return {**sessions, "transformers": peer}


def measure(
    engines: dict[str, Score], ids: Any, rounds: int
) -> tuple[dict[str, float], dict[str, float], float]:
    """Return inputs per second and the ratio to transformers, medians, and the largest difference.

    The difference is that of logits in float32 between birchbark and transformers.
    """
    found = {name: np.asarray(score(ids)) for name, score in engines.items()}  # warm up
    times: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, score in engines.items():
            started = time.perf_counter()
            score(ids)
            times[name].append(time.perf_counter() - started)
    peer = times["transformers"]
    speeds = {name: len(ids) / statistics.median(taken) for name, taken in times.items()}
    ratios = {
        name: statistics.median(b / a for a, b in zip(taken, peer, strict=True))
        for name, taken in times.items()
    }
    difference = np.abs(found["birchbark fp32"] - found["transformers"]).max()
    return speeds, ratios, float(difference)


def report(rows: list[tuple[str, int, dict[str, float], dict[str, float], float]]) -> str:
    """Return the table as Markdown."""
    import torch
    import transformers

    described = machine()
    lines = [
        "<!-- Made by benchmarks/score_families.py; do not edit. -->",
        "# Families of models",
        "",
        f"{described['processor']}; torch {torch.__version__}, transformers "
        f"{transformers.__version__}. One core. Models of the size of MiniLM with random weights; "
        "inputs of equal length, as token ids. Inputs per second, and in parentheses how many "
        "times as fast as transformers: medians of interleaved rounds. Last column: the largest "
        "difference between the logits of birchbark fp32 and of transformers.",
        "",
        "| family | tokens | birchbark fp32 | birchbark int8 | transformers | difference |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for family, tokens, speeds, ratios, difference in rows:
        cells = [f"{speeds[name]:.1f} ({ratios[name]:.2f} ×)" for name in speeds]
        lines.append(f"| {NAMES[family]} | {tokens} | {' | '.join(cells)} | {difference:.0e} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
