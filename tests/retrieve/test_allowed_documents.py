"""Are phrases found wherever they are in a text?"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from birchbark.retrieve.allowed_documents import HAS, LACKS, UNREAD, Phrase
from birchbark.text.analyzer import analyzer
from birchbark.text.normal_form import normal_form
from birchbark.text.words import words

WORD = st.sampled_from(["ab", "Ab", "b", "a.b", "é", "e\u0301", "日", "ΑΣ", "'", "_"])
TEXT = st.text("aB1é日\u0301Σ.,'_- \n") | st.lists(WORD | st.sampled_from("- \n.")).map("".join)
TEXT |= st.lists(WORD).map(" ".join)


@given(TEXT, TEXT.filter(words), st.integers(1, 9))
def test_small_pieces_have_the_phrases_of_the_text(text: str, phrase: str, size: int) -> None:
    """The result is that of the words of the whole text, compared with those of the phrase."""
    of_text, of_phrase = (words(normal_form(one).lower()) for one in (text, phrase))
    n = len(of_phrase)
    expected = any(of_text[i : i + n] == of_phrase for i in range(len(of_text)))
    found = Phrase(phrase, analyzer("english")).state_in_text(text, lambda: False, size)
    assert found == (HAS if expected else LACKS)


def test_a_phrase_is_not_looked_for_when_time_is_up() -> None:
    """It is asked between pieces, and what is not known then is not claimed."""

    def late_after(pieces: int) -> Callable[[], bool]:
        asked = count()
        return lambda: next(asked) >= pieces

    phrase, text = Phrase("ab blue", analyzer("english")), "blue heron ab " * 100
    states = [phrase.state_in_text(text, late_after(n), 100) for n in range(30)]
    assert states[0] == states[5] == states[10] == UNREAD
    assert HAS in states
