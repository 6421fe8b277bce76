"""Does any request break the service? Sends two thousand requests made from its own description.

    make fuzz            # FUZZ=6 for six times as many

schemathesis sends valid and invalid requests for every operation of /openapi.json, one after the
other. Failures are 5xx statuses, and statuses, content types or bodies that are not as described.
The service ranks with the default model, and writes to an index of its own.
"""

from __future__ import annotations

import os
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
SERVE = ("serve", "notes", "--port", "0", "--writable", "--budget", "200ms", "--max-time", "1s")
EXAMPLES = 200  # per operation: 300 made 3,016 requests, 900 made 7,804


def main(share: float) -> int:
    """Serve a folder and fuzz it; return schemathesis' exit code, or 1 if the service ended.

    share: of EXAMPLES.
    """
    with tempfile.TemporaryDirectory(prefix="birchbark-fuzz-") as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        for name in ("README", "ARCHITECTURE", "CHANGELOG"):
            (notes / f"{name}.md").write_text(Path(f"{name}.md").read_text("utf-8"), "utf-8")
        log = Path(folder) / "log"  # a file, because nothing would read a pipe
        with log.open("w") as out:
            command = [sys.executable, "-m", "birchbark", *SERVE]
            service = subprocess.Popen(command, stderr=out, cwd=folder)
        try:
            while not (url := re.search(r"http://\S+/", log.read_text())):
                if service.poll() is not None:
                    sys.stderr.write(log.read_text())
                    return 1
                time.sleep(0.1)
            fuzz = ["run", f"{url[0]}openapi.json", "--seed", "1", "--continue-on-failure"]
            fuzz += ["--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing"]
            fuzz += ["--max-examples", str(max(1, round(EXAMPLES * share)))]
            fuzz += ["--request-timeout", "20"]
            status = subprocess.run([SCHEMATHESIS, *fuzz], cwd=folder).returncode
            ended = service.poll() is not None
            if status or ended:  # the log names the request that failed
                state = "ended" if ended else "printed"
                sys.stderr.write(f"the service {state}: {log.read_text()}")
            return status or int(ended)
        finally:
            service.kill()
            service.wait(20)


if __name__ == "__main__":
    sys.exit(main(float(os.environ.get("FUZZ", "1"))))
