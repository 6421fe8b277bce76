"""Do the default models and the analyzer suit the language of an index's documents?"""

from __future__ import annotations

from collections import Counter

from birchbark import defaults
from birchbark.collection.files.language import language_of
from birchbark.index.index import Index
from birchbark.pipeline.answers.example_queries import spread_ids
from birchbark.text.languages import ANALYZER_OF, LANGUAGES

SAMPLE = 40  # documents of which the language is recognised


def language_notes(index: Index) -> list[str]:
    """Return notes if most of a sample of documents are in another language than the models read.

    Short documents are recognised together. There are none without the extra `files`.
    """
    texts = [d.contents for d in index.documents(spread_ids(index, SAMPLE))]
    languages = Counter(filter(None, map(language_of, texts)))
    if languages.total() < len(texts) / 2:
        languages = Counter([language_of(" ".join(texts))])
    language, count = languages.most_common(1)[0]
    if language in ("", "en") or count <= languages.total() / 2:
        return []
    notes = [
        f"note: most documents are in another language than English ({language}). The default "
        "models read English; with other languages BM25 alone (--model none) or a "
        "multilingual --model may rank better"
    ]
    if index.analyzer.name in (defaults.ANALYZER, defaults.FILE_ANALYZER):
        other = ANALYZER_OF.get(language)
        notes.append(
            f"note: the analyzer {index.analyzer.name} is for English words; "
            + (
                f"--analyzer {other} is for this language"
                if other
                else f"--analyzer has others for {len(LANGUAGES)} languages"
            )
        )
    return notes
