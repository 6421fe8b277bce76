"""Which queries gain or lose most from a model's evidence, and which segments contribute?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from birchbark import InputError
from birchbark.checkpoint.locate import open_named
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.evaluate.measures import Results
from birchbark.score.attention import attention
from birchbark.score.token_limits import cut_text
from birchbark.show.attention_page import attention_page
from birchbark.show.plot import Bars
from birchbark_studies.experiments.evidence.evidence_runs import EvidenceRuns
from birchbark_studies.experiments.evidence.evidence_settings import ALONE_SUFFIX, EvidenceSettings
from birchbark_studies.outcome import Topic, TopicHit

SHOWN = 3  # queries with the largest gains, with the largest losses, and documents per query


@dataclass(frozen=True, slots=True)
class TopicAnalysis:
    """Gains and losses per query.

    Attributes:
        plots: One plot per collection and model, of the gains of all queries.
        topics: The example queries.
        pages: File name → attention page for the query with the largest gain.
    """

    plots: tuple[Bars, ...]
    topics: tuple[Topic, ...]
    pages: Mapping[str, str]


def analyse_topics(
    settings: EvidenceSettings,
    ranked: Sequence[EvidenceRuns],
    results: Sequence[Mapping[str, Results]],
    models: Mapping[str, str],
) -> TopicAnalysis:
    """Make figures 5.1 to 5.3 of the birch paper for the models in `settings.topics`.

    Of several seeds, gains are those of the mean, hits and attention those of the first.

    results: for each collection, run → its evaluation.
    models: name → model name or path.
    """
    plots: list[Bars] = []
    topics: list[Topic] = []
    pages: dict[str, str] = {}
    for n, (collection, by_run) in enumerate(zip(ranked, results, strict=True), 1):
        for number, name in enumerate(settings.topics, 1):
            model = settings.first_seed(name)
            rows = _compared_rows(settings, collection, model)
            baseline, row = (settings.shown_as.get(row, row) for row in rows)
            changes = _changes(by_run[baseline], by_run[row], settings.tune)
            improved = _improved_percentage(changes)
            plots.append(
                Bars(
                    f"queries-{n}-{number}",
                    f"{collection.name}: {name}, {improved:.0f} % of queries improved",
                    "queries",
                    f"{settings.tune}, difference from {baseline}",
                    tuple(after - before for _, before, after in changes),
                )
            )
            indices = range(len(changes))
            shown = dict.fromkeys([*indices[:SHOWN], *indices[-SHOWN:]])
            examples = [_topic(collection, model, rows, *changes[i]) for i in shown]
            if page := _attention_page(settings, models[model], examples[0]):
                file = f"attention-{n}-{number}.html"
                pages[file], examples[0] = page, replace(examples[0], page=file)
            if model != name:
                label = f"{name}, mean over the seeds; hits of {model}"
                examples = [replace(example, model=label) for example in examples]
            topics += examples
    return TopicAnalysis(tuple(plots), tuple(topics), pages)


def _compared_rows(settings: EvidenceSettings, ranked: EvidenceRuns, name: str) -> tuple[str, str]:
    """Return the rows of the baseline and of the model, with the most segments.

    Two models are compared without the first stage, as in table 6 of the uva paper.
    """
    row, baseline = ranked.rows[name][-1], settings.first_seed(settings.topics_baseline)
    if not baseline:
        return ranked.baseline, row
    return ranked.rows[baseline][-1] + ALONE_SUFFIX, row + ALONE_SUFFIX


def _improved_percentage(changes: Sequence[tuple[str, float, float]]) -> float:
    return 100 * (sum(after > before for _, before, after in changes) / len(changes))


def _attention_page(settings: EvidenceSettings, model: str, topic: Topic) -> str:
    """Render the model's attention for the best segment of the best document.

    Returns an empty string if there is no segment, if the model is not a cross-encoder, or if the
    segment is longer than the model's input.
    """
    texts = [text for hit in topic.hits[:1] for _, text in hit.segments[:1]]
    if not texts:
        return ""
    tokenizer = CheckpointTokenizer(open_named(model))
    query, _ = cut_text(tokenizer, topic.query, settings.query_tokens)  # as it was scored
    try:
        result = attention(model, query, texts[0], settings.precision)
    except InputError:
        return ""
    return attention_page(result, topic.model, query, texts[0])


def _changes(baseline: Results, model: Results, name: str) -> list[tuple[str, float, float]]:
    """Return (query_id, value before, value after), largest gain first; ties by query id."""
    before, after = baseline.values[name], model.values[name]
    changes = [(query_id, before[query_id], after[query_id]) for query_id in before]
    return sorted(changes, key=lambda change: (change[1] - change[2], change[0]))


def _topic(
    ranked: EvidenceRuns,
    name: str,
    rows: tuple[str, str],
    query_id: str,
    before: float,
    after: float,
) -> Topic:
    """Describe one query. rows: the baseline's row and the model's row."""
    text = next((query.text for query in ranked.queries if query.query_id == query_id), "")
    grades, segments = ranked.qrels.grades[query_id], ranked.best[name].get(query_id, {})
    ranks = {
        tag: {d: rank for rank, d in enumerate(ranking.doc_ids, 1)}
        for tag in rows
        if (ranking := ranked.runs[tag].rankings.get(query_id))
    }
    hits = tuple(
        TopicHit(
            doc_id,
            grades.get(doc_id),
            ranks[rows[0]].get(doc_id),
            rank,
            segments.get(doc_id, ()),
        )
        for doc_id, rank in list(ranks.get(rows[1], {}).items())[:SHOWN]
    )
    return Topic(ranked.name, name, query_id, text, before, after, hits)
