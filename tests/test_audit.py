"""Does the audit distinguish vulnerabilities, packages not audited, and no answer?"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

verdict = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "audit.py"))["verdict"]
VULNERABILITY = {"id": "CVE-1", "fix_versions": ["2.0"], "aliases": [], "description": ""}
SAFE = {"name": "safe", "version": "1.0", "vulns": []}
VULNERABLE = {"name": "vulnerable", "version": "1.0", "vulns": [VULNERABILITY]}
THIS_PACKAGE = {"name": "birchbark", "skip_reason": "distribution marked as editable"}
UNKNOWN = {"name": "unknown", "skip_reason": "not found"}


def audit(*packages: object) -> tuple[list[str], bool, bool]:
    """Return the verdict on a report of these packages."""
    result: tuple[list[str], bool, bool] = verdict(json.dumps({"dependencies": packages}), "")
    return result


def test_vulnerability_is_listed_with_its_fix() -> None:
    """The line has package, version, advisory and the fixed version."""
    lines, vulnerable, complete = audit(SAFE, VULNERABLE)
    assert vulnerable
    assert complete
    assert lines[0] == "vulnerable 1.0: CVE-1, fixed in 2.0"


def test_package_that_was_not_audited_is_not_safe() -> None:
    """The number of such packages and a reason are printed."""
    lines, vulnerable, complete = audit(SAFE, UNKNOWN)
    assert (vulnerable, complete) == (False, False)
    assert lines == [
        "NOT AUDITED: 1 of 2 packages (unknown: not found)",
        "audited: 1, vulnerable: 0",
    ]


def test_no_answer_is_neither_vulnerable_nor_complete() -> None:
    """This is the case if the database cannot be reached."""
    lines, vulnerable, complete = verdict("", "a traceback\nno such host")
    assert (lines, vulnerable, complete) == (["NOT AUDITED: no such host"], False, False)


def test_safe_packages() -> None:
    """Only the count is printed; birchbark itself is not audited."""
    for packages in ((SAFE,), (SAFE, THIS_PACKAGE)):
        assert audit(*packages) == (["audited: 1, vulnerable: 0"], False, True)
