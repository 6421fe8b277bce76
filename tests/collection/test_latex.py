"""Do the words in commands of LaTeX stay that pandoc does not know?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.file_readers.latex import SKIPPED, definitions
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"A \term{canoe} of bark.", "A canoe of bark."),
        (r"\term{canoe}s, \term[x]{\emph{boats}} and \term", "canoes, boats and"),
        (r"\job{2024}{Baker of\\ bread}{Bonn}.", "2024 Baker of\nbread Bonn."),
        (r"Bark\index{bark}\vspace{2cm}\label{x} \known{of} birch", "Bark of birch"),
        (r"\begin{mine}a \term{b}\end{mine}", "a b"),
        (r"\mine{a} \begin{mine}b\end{mine}", "b"),
        (
            r"\resizebox{\textwidth}{!}{wide} \fcolorbox{red}{blue}{box} \scalebox{2}[3]{}",
            "wide box [3]",
        ),
        (
            r"\begin{algorithm}\caption{Peeling}\begin{algorithmic}\State cut\end{algorithmic}"
            r"\end{algorithm}\begin{figure}\begin{minipage}{2cm}\caption[x]{A tree}\end{minipage}"
            r"\caption*{Trees}\end{figure}\fbox{\begin{minipage}{2cm}\caption{Oak}\end{minipage}}",
            "Peeling cut A tree Trees Oak",
        ),
        (r"\setbeamercolor{title}{fg=red}\fontspec{Arial}\enlargethispage{2cm}Bark", "Bark"),
    ],
)
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_words_in_unknown_commands_stay(tmp_path: Path, begin: str, body: str, text: str) -> None:
    """Those for the layout, and labels, are left out; if definitions spoil the file, all are."""
    pytest.importorskip("pypandoc")
    head = begin + r"\documentclass{article}\newcommand{\known}[1]{#1}\begin{document}"
    (tmp_path / "a.tex").write_text(f"{head}{body}\n\n\\end{{document}}", encoding="utf-8")
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert " ".join(document.text.split()) == " ".join(text.split())


def test_the_error_of_a_damaged_file_is_the_reason(tmp_path: Path) -> None:
    """It follows what pandoc has left out before."""
    pytest.importorskip("pypandoc")
    (tmp_path / "a.tex").write_text(r"\maketitle \term{b} {\term{c}")
    intake = Intake()
    assert not list(read_folder(tmp_path, intake))
    assert "pandoc cannot read it: Error at" in str(intake.skipped[0])


@given(
    st.lists(st.sampled_from([SKIPPED, r"\a", "[b]", "{", "}", r"\{", "' at line 1"]) | st.text())
)
def test_any_messages_give_definitions_or_none(messages: list[str]) -> None:
    """Each has at least one argument."""
    found = definitions("".join(messages))
    assert found == "" or "#2" in found
