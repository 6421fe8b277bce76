"""Does any request break the service? Ten thousand made of its own description, at a real one.

    make fuzz            # FUZZ="--max-examples 50" for less

Every operation of /openapi.json is asked with requests that fit it and requests that do not, one
after the other. Wrong are a status of 5xx, and a status, a content type or an answer that is not as
described. The service ranks with the default model and writes to an index of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
SERVE = ("serve", "notes", "--port", "0", "--writable", "--budget", "200ms", "--longest", "1s")
EXAMPLES = 1_200  # of each operation; with those that its examples and limits call for


def main(words: list[str]) -> int:
    """Serve a folder and have it asked; schemathesis' own status, or 1 where the service ended."""
    with tempfile.TemporaryDirectory(prefix="birchbark-fuzz-") as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        for name in ("README", "ARCHITECTURE", "CHANGELOG"):
            (notes / f"{name}.md").write_text(Path(f"{name}.md").read_text("utf-8"), "utf-8")
        log = Path(folder) / "log"  # a file, since nobody reads on
        with log.open("w") as out:
            command = [sys.executable, "-m", "birchbark", *SERVE]
            service = subprocess.Popen(command, stderr=out, cwd=folder)
        try:
            while not (found := re.search(r"http://\S+/", log.read_text())):
                if service.poll() is not None:
                    sys.stderr.write(log.read_text())
                    return 1
                time.sleep(0.1)
            asked = ["run", f"{found[0]}openapi.json", "--seed", "1", "--continue-on-failure"]
            asked += ["--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing"]
            asked += ["--max-examples", str(EXAMPLES), "--request-timeout", "20"]
            status = subprocess.run([SCHEMATHESIS, *asked, *words], cwd=folder).returncode
            if service.poll() is not None:
                sys.stderr.write(f"the service ended: {log.read_text()}")
            return status or int(service.poll() is not None)
        finally:
            service.kill()
            service.wait(20)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
