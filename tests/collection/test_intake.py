"""Does an Intake raise or count every bad record?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError


@given(st.lists(st.text(max_size=5)))
def test_skipped_records_are_collected(faults: list[str]) -> None:
    """All errors can be reported afterwards, in order."""
    intake = Intake(skip_bad=True)
    for fault in faults:
        intake.bad(InputError(fault))
    assert [error.what for error in intake.skipped] == faults


def test_skipped_records_keep_nothing_else_in_memory() -> None:
    """They do not keep the frames in which they were found, with the record and the reader."""
    intake = Intake(skip_bad=True)
    try:
        json.loads("{")
    except ValueError as broken:
        try:
            raise InputError("broken JSON") from broken
        except InputError as error:
            intake.bad(error)
    [skipped] = intake.skipped
    assert (skipped.__traceback__, skipped.__context__, skipped.__cause__) == (None, None, None)


@given(st.lists(st.sampled_from("abc")))
def test_every_note_is_counted(notes: list[str]) -> None:
    """Each note is kept once, with its count."""
    intake = Intake()
    for note in notes:
        intake.note(note)
    assert dict(intake.notes) == {note: notes.count(note) for note in notes}


def test_the_first_bad_record_is_raised() -> None:
    """Records are skipped only on request; the error raised is the one passed in."""
    intake, error = Intake(), InputError("broken", where="c.jsonl:3")
    with pytest.raises(InputError, match=r"^c\.jsonl:3: broken$") as caught:
        intake.bad(error)
    assert caught.value is error
    assert intake.skipped == []


def test_the_remedy_is_added_to_errors_without_one() -> None:
    """The reader's own remedy, where it has one, takes precedence."""
    intake = Intake(remedy="or use --skip-bad")
    with pytest.raises(InputError, match=r"broken \(or use --skip-bad\)"):
        intake.bad(InputError("broken"))
    with pytest.raises(InputError, match=r"broken \(mend it\)"):
        intake.bad(InputError("broken", remedy="mend it"))


def test_two_intakes_share_nothing() -> None:
    """Counts belong to one Intake."""
    first, second = Intake(skip_bad=True), Intake(skip_bad=True)
    first.bad(InputError("broken"))
    first.note("hidden file")
    assert (second.skipped, dict(second.notes)) == ([], {})


@pytest.mark.parametrize("name", ["UTF-8", "utf8", "U8", "utf-8"])
def test_utf_8_is_the_default_however_it_is_spelt(name: str) -> None:
    """Files in other encodings are detected then."""
    assert Intake(encoding=name).encoding == "utf-8"
