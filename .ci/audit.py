"""Which installed packages have publicly known vulnerabilities?

    python .ci/audit.py            exit code 1 if there is one; packages not audited are listed
    python .ci/audit.py --strict   exit code 1 also if a package could not be audited

pip-audit alone passes packages that its database does not know, and without the network it fails as
if there were vulnerabilities; a build must tell these three cases apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SECONDS = 300
THIS_PACKAGE = "birchbark"  # installed from this repository: not in any database
OPTIONS = ["--format", "json", "--skip-editable", "--progress-spinner", "off", "--timeout", "15"]


def run_pip_audit() -> tuple[str, str]:
    """Return the standard output and error of pip-audit."""
    audit = Path(sys.executable).with_name("pip-audit")
    try:
        done = subprocess.run([audit, *OPTIONS], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "", f"no answer in {SECONDS} s"
    except FileNotFoundError:
        return "", f"{audit} is missing; pip install pip-audit"
    return done.stdout, done.stderr.strip()


def verdict(report: str, errors: str) -> tuple[list[str], bool, bool]:
    """Return lines to print, whether there is a vulnerability, and whether all were audited.

    report: pip-audit's JSON, or nothing. errors: its standard error.
    """
    if not report.strip():
        reason = errors.splitlines()[-1] if errors else "pip-audit printed nothing"
        return [f"NOT AUDITED: {reason}"], False, False
    packages = [p for p in json.loads(report)["dependencies"] if p["name"] != THIS_PACKAGE]
    vulnerable = [package for package in packages if package.get("vulns")]
    skipped = [package for package in packages if "vulns" not in package]
    lines = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in "
        + (", ".join(vulnerability["fix_versions"]) or "no version yet")
        for package in vulnerable
        for vulnerability in package["vulns"]
    ]
    if skipped:
        first = f"{skipped[0]['name']}: {skipped[0].get('skip_reason', 'no reason given')}"
        lines.append(f"NOT AUDITED: {len(skipped)} of {len(packages)} packages ({first})")
    lines.append(f"audited: {len(packages) - len(skipped)}, vulnerable: {len(vulnerable)}")
    return lines, bool(vulnerable), not skipped


def main() -> int:
    """Print the verdict, and return the exit code."""
    lines, vulnerable, complete = verdict(*run_pip_audit())
    sys.stdout.write("\n".join(lines) + "\n")
    return int(vulnerable or ("--strict" in sys.argv[1:] and not complete))


if __name__ == "__main__":
    sys.exit(main())
