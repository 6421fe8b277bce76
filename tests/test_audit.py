"""Does the audit tell faults, what was not asked, and no answer apart?"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

verdict = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "audit.py"))["verdict"]
FAULT = {"id": "CVE-1", "fix_versions": ["2.0"], "aliases": [], "description": ""}
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
FAULTY = {"name": "faulty", "version": "1.0", "vulns": [FAULT]}
OWN = {"name": "birchbark", "skip_reason": "distribution marked as editable"}
UNKNOWN = {"name": "unknown", "skip_reason": "not found"}


def told(*packages: object) -> tuple[list[str], bool, bool]:
    """The verdict on a report of these packages."""
    found: tuple[list[str], bool, bool] = verdict(json.dumps({"dependencies": packages}), "")
    return found


def test_a_known_fault_fails_and_says_what_mends_it() -> None:
    """By name, version and advisory."""
    lines, known, whole = told(SOUND, FAULTY)
    assert known
    assert whole
    assert lines[0] == "faulty 1.0: CVE-1, mended in 2.0"


def test_what_was_not_asked_is_not_sound() -> None:
    """Its number and a reason are told, beside what was asked."""
    lines, known, whole = told(SOUND, UNKNOWN)
    assert (known, whole) == (False, False)
    assert lines == [
        "NOT AUDITED: 1 of 2 packages (unknown: not found)",
        "audited: 1, with known faults: 0",
    ]


def test_no_answer_is_no_fault_and_no_audit() -> None:
    """Where the database is out of reach."""
    lines, known, whole = verdict("", "a traceback\nno such host")
    assert (lines, known, whole) == (["NOT AUDITED: no such host"], False, False)


def test_sound_packages_are_sound() -> None:
    """Nothing is to be said but the count; birchbark itself is not asked for."""
    for packages in ((SOUND,), (SOUND, OWN)):
        assert told(*packages) == (["audited: 1, with known faults: 0"], False, True)
