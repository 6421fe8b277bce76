"""`birchbark model calibrate`: on which scale are a model's scores?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.console import notify, progress, report_intake
from birchbark.cli.options import PATH, check_given_options, option, replace_option, threads_option
from birchbark.errors import InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from birchbark.checkpoint.score_scale import ScoreScale
    from birchbark.records import Pair
    from birchbark.score.bert_scorer import BiEncoderScorer
    from birchbark.score.cross_encoder import CrossEncoderScorer


@click.command(
    "calibrate",
    epilog="Example: birchbark model calibrate my-model --pairs pairs.tsv --to my-calibrated-model",
    short_help="Fit the scale of a model's scores to labelled pairs.",
)
@click.argument("model")
@option(
    "--pairs",
    "files",
    type=PATH,
    multiple=True,
    required=True,
    metavar="FILE",
    help="Labelled pairs, as `birchbark pairs` writes them; can be repeated. Negatives should be "
    "as hard as the candidates of a search: passages that BM25 ranks high.",
)
@option("--to", "target", type=PATH, help="Write a copy of MODEL that states the scale.")
@replace_option("model")
@threads_option
def calibrate_command(
    model: str,
    files: tuple[Path, ...],
    target: Path | None,
    replace: bool,
    threads: int | None,
) -> None:
    """Fit the scale on which the scores of MODEL can be mixed with other scores.

    A score is the sigmoid of (log-odds − shift) / temperature; for an embedding model it is (cosine
    − shift) / temperature, clipped to [0, 1]. Relevant and other pairs count the same in total.
    """
    import numpy as np

    from birchbark.artifact import refuse_existing
    from birchbark.checkpoint.locate import locate
    from birchbark.checkpoint.state_scale import copy_with_scale
    from birchbark.collection.parsing.intake import Intake
    from birchbark.evaluate.calibrate import fit_scale
    from birchbark.pairs.read import read_pairs
    from birchbark.score.bert_scorer import BiEncoderScorer
    from birchbark.score.cross_encoder import CrossEncoderScorer
    from birchbark.score.load_scorer import load_scorer

    check_given_options()
    if target:
        refuse_existing(target, replace=replace)
    directory, intake = locate(model), Intake()
    scorer = load_scorer(directory, threads)
    if not isinstance(scorer, (CrossEncoderScorer, BiEncoderScorer)) or scorer.width > 1:
        raise InputError(f"{model} scores whole documents", wanted="a model that scores texts")
    pairs = [pair for file in files for pair in read_pairs(file, intake)]
    report_intake(intake)
    with progress("scoring", len(pairs)) as advance:
        outputs, truncated = _outputs(scorer, pairs, advance)
    if truncated:
        notify(f"of {plural(truncated, 'text')} only the beginning fits into the model's input")
    scale = _scale(scorer, *fit_scale(outputs, np.array([pair.relevance > 0 for pair in pairs])))
    stated = scale.as_config()
    click.echo("\n".join(f"{name}\t{value:.4g}" for name, value in stated.items()))
    if target:
        copy_with_scale(directory, scale, target, replace=replace)
        notify(f"{target}: a copy of {model} that states this scale")


def _outputs(
    scorer: CrossEncoderScorer | BiEncoderScorer,
    pairs: list[Pair],
    advance: Callable[[int], object],
) -> tuple[NDArray[np.float64], int]:
    """Return the model's outputs for all pairs (pairs,), and how many texts were truncated."""
    import numpy as np

    by_query: dict[str, list[int]] = {}
    for position, pair in enumerate(pairs):
        by_query.setdefault(pair.query, []).append(position)
    outputs, truncated = np.empty(len(pairs)), 0
    for query, positions in by_query.items():
        budget = scorer.token_budget(query)
        token_ids = scorer.encode([pairs[i].text for i in positions])
        truncated += sum(len(ids) > budget for ids in token_ids)
        outputs[positions] = scorer.outputs(query, [ids[:budget] for ids in token_ids])
        advance(len(positions))
    return outputs, truncated


def _scale(
    scorer: CrossEncoderScorer | BiEncoderScorer, shift: float, temperature: float
) -> ScoreScale:
    """Return the scale for a fitted shift and temperature.

    A cosine is not passed through a sigmoid, but through the line that touches it in its middle.
    """
    from birchbark.checkpoint.score_scale import ScoreScale
    from birchbark.score.bert_scorer import BiEncoderScorer

    if not isinstance(scorer, BiEncoderScorer):
        return ScoreScale(shift, temperature, stated=True)
    return ScoreScale(shift - 2 * temperature, 4 * temperature, stated=True)
