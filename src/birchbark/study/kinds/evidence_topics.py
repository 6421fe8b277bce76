"""Which queries gained and lost most by a model's evidence, and by which sentences?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from birchbark.errors import InputError
from birchbark.evaluate.measures import Results
from birchbark.score.attention import attention
from birchbark.show.attention import attention_page
from birchbark.show.plot import Bars
from birchbark.study.kinds.evidence_choices import EvidenceChoices
from birchbark.study.kinds.evidence_runs import EvidenceRuns
from birchbark.study.outcome import Topic, TopicHit

SHOWN = 3  # queries from each end, documents of a query


@dataclass(frozen=True, slots=True)
class Looked:
    """What was seen: a plot for each model and collection, and queries from both ends of it.

    pages: file name → page of attention, for the query that gained most by each.
    """

    plots: tuple[Bars, ...]
    topics: tuple[Topic, ...]
    pages: Mapping[str, str]


def look(
    choices: EvidenceChoices,
    ranked: Sequence[EvidenceRuns],
    whole: Sequence[Mapping[str, Results]],
    models: Mapping[str, str],
) -> Looked:
    """Figures 5.1 to 5.3 of the birch paper, of the models that are to be looked at.

    whole: values of each collection's runs. models: name → what opens it.
    """
    plots: list[Bars] = []
    topics: list[Topic] = []
    pages: dict[str, str] = {}
    for place, (one, results) in enumerate(zip(ranked, whole, strict=True), 1):
        for number, name in enumerate(choices.looked, 1):
            base = one.rows[choices.looked_over] if choices.looked_over else one.baseline
            changes = _changes(results[base], results[one.rows[name]], choices.tune)
            better = sum(after > before for _, before, after in changes) / len(changes)
            plots.append(
                Bars(
                    f"queries-{place}-{number}",
                    f"{one.name}: {name}, {100 * better:.0f} % of the queries improved",
                    "queries",
                    f"{choices.tune}, less {base}'s",
                    tuple(after - before for _, before, after in changes),
                )
            )
            some = dict.fromkeys([*range(len(changes))[:SHOWN], *range(len(changes))[-SHOWN:]])
            seen = [_topic(one, name, (base, one.rows[name]), *changes[at]) for at in some]
            if page := _attention(choices, models[name], seen[0]):
                file = f"attention-{place}-{number}.html"
                pages[file], seen[0] = page, replace(seen[0], page=file)
            topics += seen
    return Looked(tuple(plots), tuple(topics), pages)


def _attention(choices: EvidenceChoices, model: str, topic: Topic) -> str:
    """What `model` looked at in the best document's best segment; empty where it cannot be drawn.

    That is so for an embedding, and for texts longer than one input.
    """
    texts = [text for hit in topic.hits[:1] for _, text in hit.segments[:1]]
    try:
        found = [attention(model, topic.query, text, choices.precision) for text in texts]
    except InputError:
        return ""
    return "".join(attention_page(one, topic.model, topic.query, texts[0]) for one in found)


def _changes(baseline: Results, model: Results, name: str) -> list[tuple[str, float, float]]:
    """Query, value before and after, the highest gain first; ties by the query's id."""
    before, after = baseline.values[name], model.values[name]
    changes = [(query_id, before[query_id], after[query_id]) for query_id in before]
    return sorted(changes, key=lambda change: (change[1] - change[2], change[0]))


def _topic(
    one: EvidenceRuns,
    name: str,
    rows: tuple[str, str],
    query_id: str,
    before: float,
    after: float,
) -> Topic:
    """rows: what it is compared with, and its own."""
    text = next((query.text for query in one.queries if query.query_id == query_id), "")
    grades, found = one.qrels.grades[query_id], one.best[name].get(query_id, {})
    ranks = {
        tag: {d: rank for rank, d in enumerate(ranking.doc_ids, 1)}
        for tag in rows
        if (ranking := one.runs[tag].rankings.get(query_id))
    }
    hits = tuple(
        TopicHit(
            *(doc_id, grades.get(doc_id), ranks[rows[0]].get(doc_id), rank),
            found.get(doc_id, ()),
        )
        for doc_id, rank in list(ranks.get(rows[1], {}).items())[:SHOWN]
    )
    return Topic(one.name, name, query_id, text, before, after, hits)
