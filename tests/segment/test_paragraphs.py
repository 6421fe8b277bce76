"""Do blank lines separate paragraphs?"""

from __future__ import annotations

from birchbark.records import Document, Segment
from birchbark.segment.paragraphs import paragraphs


def test_paragraphs() -> None:
    """Blank lines separate them, with any line breaks; a short title is prepended to each."""
    text = "One line,\nand its next.\r\n \r\n\tTwo.\n\n\n\nThree. \n"
    texts = [s.text for s in paragraphs(Document("d", {"text": text}))]
    assert texts == ["One line,\nand its next.", "Two.", "Three."]
    titled = paragraphs(Document("d", {"title": "Bees", "text": "A.\n\nB."}))
    assert [(s.text, s.start, s.end) for s in titled] == [("Bees\nA.", 5, 7), ("Bees\nB.", 9, 11)]
    assert paragraphs(Document("d", {"title": "Bees"})) == [Segment("d", 0, 4, "Bees")]
    long_title = Document("d", {"title": "t " * 60, "text": "A."})
    assert paragraphs(long_title)[0].text.startswith("t t")
