"""Are exactly Lucene's stop words removed?"""

from __future__ import annotations

from birchbark.text.analyzer import analyzer
from birchbark.text.stop_words import LUCENE


def test_the_stop_words_are_lucenes() -> None:
    """33 words in lower case, removed by english and unstemmed, and by no other analyzer."""
    assert len(LUCENE) == 33
    text = " ".join(sorted(LUCENE)).title()
    assert analyzer("english").terms(text) == analyzer("unstemmed").terms(text) == []
    assert len(analyzer("porter").terms(text)) == len(analyzer("plain").terms(text)) == 33
