"""Does an intake raise a bad record or keep count of it, and never lose one?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.intake import Intake
from birchbark.errors import InputError


@given(st.lists(st.text(max_size=5)))
def test_every_bad_record_is_kept_where_bad_ones_are_skipped(faults: list[str]) -> None:
    """What was skipped can be told afterwards, each record with its own error, in order."""
    intake = Intake(skip_bad=True)
    for fault in faults:
        intake.bad(InputError(fault))
    assert [error.what for error in intake.skipped] == faults


@given(st.lists(st.sampled_from("abc")))
def test_every_note_is_counted(notes: list[str]) -> None:
    """A note is told once, but how often it occurred is known."""
    intake = Intake()
    for note in notes:
        intake.note(note)
    assert dict(intake.notes) == {note: notes.count(note) for note in notes}


def test_the_first_bad_record_is_raised() -> None:
    """Bad records are skipped only on request, and the same error comes out that went in."""
    intake, error = Intake(), InputError("broken", where="c.jsonl:3")
    with pytest.raises(InputError, match=r"^c\.jsonl:3: broken$") as caught:
        intake.bad(error)
    assert caught.value is error
    assert intake.skipped == []


def test_advice_of_the_intake_is_given_where_the_error_has_none() -> None:
    """The command line knows of --skip-bad, the reader does not; the reader's advice goes first."""
    intake = Intake(remedy="or use --skip-bad")
    with pytest.raises(InputError, match=r"broken \(or use --skip-bad\)"):
        intake.bad(InputError("broken"))
    with pytest.raises(InputError, match=r"broken \(mend it\)"):
        intake.bad(InputError("broken", remedy="mend it"))


def test_two_intakes_share_nothing() -> None:
    """Counts belong to one reading of one collection."""
    first, second = Intake(skip_bad=True), Intake(skip_bad=True)
    first.bad(InputError("broken"))
    first.note("hidden file")
    assert (second.skipped, dict(second.notes)) == ([], {})
