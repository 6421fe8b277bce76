"""Is the text of a document found again in its markup?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing.markup import page_markup, page_text
from birchbark.serve.sanitised_html import markdown_markup, sanitised
from birchbark.serve.shown_text import WHITE, aligned_runs, shown_text


def shown_parts(shown: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield what each run has in both texts."""
    bare, wanted = WHITE.sub("", shown), WHITE.sub("", text)
    for at, start, length in aligned_runs(shown, text):
        yield bare[at : at + length], wanted[start : start + length]


WORDS = st.lists(st.sampled_from("birch bark canoe the a 树 𝔸𝔹 . , ** \n".split(" "))).map(" ".join)


PAGE = (
    """<title>Boats</title><body><nav><a href=x>Home</a></nav><header>Top</header>
<main><h1>Boats</h1><p>A birch <b>canoe</b> &amp; a <a href="barge.html">barge</a>&nbsp;float.</p>
<button>Copy</button><ruby>漢<rt>kan</rt></ruby><script>x</script>"""
    + "<p>It rows.</p>" * 20
    + ("<footer>Imprint</footer></main><p>Other</p>")
)


def test_text_is_aligned_where_markup_divides_words() -> None:
    text = "See **bold**face and [the guide](the/guide.html) for 这是**重要**的 tabs."
    shown = shown_text(sanitised(markdown_markup(text), "a.md")[0])
    parts = list(shown_parts(shown, text))
    assert all(ours == theirs for ours, theirs in parts)
    assert "".join(ours for ours, _ in parts) == "Seeboldfaceandtheguidefor这是重要的tabs"


@given(WORDS, WORDS)
def test_runs_are_equal_and_in_order(shown: str, text: str) -> None:
    """They are so in both texts, without overlap; equal texts are one run."""
    assert all(ours == theirs for ours, theirs in shown_parts(shown, text))
    runs = aligned_runs(shown, text)
    for (at, start, length), after in pairwise(runs):
        assert at + length <= after[0]
        assert start + length <= after[1]
    if bare := WHITE.sub("", text):
        assert aligned_runs(text.replace(" ", "\n"), text) == [(0, 0, len(bare))]


def test_the_markup_of_a_page_has_the_text_of_its_document() -> None:
    """It has no navigation, no buttons and nothing from beside the main element."""
    markup = sanitised(page_markup(PAGE), "boats.html")[0]
    assert WHITE.sub("", shown_text(markup)) == WHITE.sub("", page_text(PAGE)[1])
    assert "Home" not in markup
    assert "Other" not in markup
