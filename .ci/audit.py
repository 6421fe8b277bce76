"""Which packages beside this Python have faults that are publicly known?

    python .ci/audit.py            1 where a fault is known; what could not be asked is told
    python .ci/audit.py --strict   1 as well where anything could not be asked

pip-audit alone passes packages that its database does not know, and without the network fails as if
there were faults; a build must tell these three apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SECONDS = 300
OWN = "birchbark"  # installed from here: no database knows it
COMMAND = ["--format", "json", "--skip-editable", "--progress-spinner", "off", "--timeout", "15"]


def asked() -> tuple[str, str]:
    """What pip-audit writes, and what it says of itself."""
    audit = Path(sys.executable).with_name("pip-audit")
    try:
        done = subprocess.run([audit, *COMMAND], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "", f"no answer in {SECONDS} s"
    return done.stdout, done.stderr.strip()


def verdict(report: str, said: str) -> tuple[list[str], bool, bool]:
    """What to tell people; whether a fault is known; whether every package was asked for.

    report: pip-audit's JSON, empty where it had no answer; said: what it said instead.
    """
    if not report.strip():
        reason = said.splitlines()[-1] if said else "pip-audit said nothing"
        return [f"NOT AUDITED: {reason}"], False, False
    packages = [one for one in json.loads(report)["dependencies"] if one["name"] != OWN]
    known = [one for one in packages if one.get("vulns")]
    unasked = [one for one in packages if "vulns" not in one]
    told = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in "
        + (", ".join(fault["fix_versions"]) or "no version yet")
        for one in known
        for fault in one["vulns"]
    ]
    if unasked:
        first = f"{unasked[0]['name']}: {unasked[0].get('skip_reason', 'no reason given')}"
        told.append(f"NOT AUDITED: {len(unasked)} of {len(packages)} packages ({first})")
    told.append(f"audited: {len(packages) - len(unasked)}, with known faults: {len(known)}")
    return told, bool(known), not unasked


def main() -> int:
    """The exit code."""
    told, known, whole = verdict(*asked())
    sys.stdout.write("\n".join(told) + "\n")
    return int(known or ("--strict" in sys.argv[1:] and not whole))


if __name__ == "__main__":
    sys.exit(main())
