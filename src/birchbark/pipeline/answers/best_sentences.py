"""Which sentence of a hit's best passage is shown? Of three, the one that the model scores highest.

Those three have most terms of the query. People often ask in other words than the answer has, so
that the sentence with most terms is not the one that answers.
"""

from __future__ import annotations

from dataclasses import replace

from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Answer
from birchbark.pipeline.answers.snippets import Snippets
from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import cached_for_query
from birchbark.score_cache.score_in_time import SPECIAL_TOKENS, score_before

HITS = 5  # of an answer
SENTENCES = 3  # of a passage


def with_best_sentences(
    answer: Answer, query: str, scorer: Scorer, snippets: Snippets, deadline: Deadline
) -> Answer:
    """Return the answer with the sentences that the model scores highest in the first hits.

    The answer stays as it is if the model scores whole documents, or if time does not suffice. A
    sentence that is too long for the model is left out.
    """
    if scorer.width > 1:
        return answer
    found = []  # position of the hit, and span and text of a sentence
    for position, hit in enumerate(answer.hits[:HITS]):
        for evidence in hit.segments[:1]:
            spans = snippets.sentences(evidence.segment, hit.document, SENTENCES)
            found += [(position, span, evidence.segment.text[slice(*span)]) for span in spans]
    if not found:
        return answer
    budget, ids = scorer.token_budget(query), scorer.encode([text for *_, text in found])
    fits = [number for number, each in enumerate(ids) if len(each) <= budget]
    overhead = len(scorer.spans(query)) + SPECIAL_TOKENS
    read = [ids[number] for number in fits]
    scores = score_before(
        deadline, cached_for_query(scorer), query, read, overhead, all_or_none=True
    )
    if len(scores) < len(fits):
        return answer
    best = dict[int, tuple[float, tuple[int, int]]]()  # by position; the first of equal scores
    for number, score in zip(fits, scores.tolist(), strict=True):
        position, span, _ = found[number]
        if position not in best or score > best[position][0]:
            best[position] = score, span
    hits = list(answer.hits)
    for position, (_, span) in best.items():
        first, *others = hits[position].segments
        hits[position] = replace(hits[position], segments=(replace(first, sentence=span), *others))
    return replace(answer, hits=tuple(hits))
