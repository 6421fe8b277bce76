"""How are scanned pages read, by the program tesseract if it is installed?"""

from __future__ import annotations

import math
import shutil
import subprocess
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING

from birchbark.collection.parsing.intake import Intake

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

PROGRAM = "tesseract"
DOTS_PER_INCH = 200
MOST_PIXELS = 30_000_000  # of a page; a larger one is rendered with fewer dots
MOST_SECONDS, MOST_SECONDS_IN_ALL = 60.0, 600.0  # for a page, and for the pages of a file
MOST_LANGUAGES = 4  # each takes time; if more are installed, tesseract's default is used
POINTS_PER_INCH = 72
PAGE = "page of a PDF without text"


def ocr_installed() -> bool:
    """Return whether the program that reads scans is installed."""
    return shutil.which(PROGRAM) is not None


class Ocr:
    """Reads scanned pages of one file, and notes how many were read and how many were not."""

    def __init__(self, intake: Intake) -> None:
        self._intake, self._end = intake, monotonic() + MOST_SECONDS_IN_ALL

    def read(self, page: PdfPage) -> str:
        """Return the text in the picture of a page; empty if there is none, or it is not read."""
        program = shutil.which(PROGRAM)
        if program is None:
            self._intake.note(f"{PAGE}, a scan perhaps: install the program tesseract to read it")
            return ""
        seconds = min(MOST_SECONDS, self._end - monotonic())
        if seconds <= 0:
            self._intake.note(f"{PAGE}: the time to read the file by OCR was up")
            return ""
        from pypdfium2 import PdfiumError

        dots = _dots_per_inch(page)
        command = [program, "-", "-", "--dpi", str(round(dots)), *_languages(program)]
        try:
            picture = _picture(page, dots / POINTS_PER_INCH)
            done = subprocess.run(
                command, input=picture, capture_output=True, timeout=seconds, check=False
            )
        except (subprocess.TimeoutExpired, OSError, PdfiumError):
            done = None
        if done is None or done.returncode:
            self._intake.note(f"{PAGE}: tesseract failed, or took longer than {MOST_SECONDS:.0f} s")
            return ""
        text = done.stdout.decode(errors="replace").replace("\f", "").strip()
        self._intake.note(f"{PAGE}: read by OCR" if text else f"{PAGE}: OCR found none either")
        return text


@cache
def _languages(program: str) -> list[str]:
    """Return the option for the languages that are installed, if they are few."""
    command = [program, "--list-langs"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=MOST_SECONDS, check=False)
    except (subprocess.TimeoutExpired, OSError):
        return []
    names = [line.strip() for line in done.stdout.decode(errors="replace").splitlines()[1:]]
    names = [name for name in names if name and name != "osd" and "/" not in name]
    return ["-l", "+".join(names)] if 0 < len(names) <= MOST_LANGUAGES else []


def _dots_per_inch(page: PdfPage) -> float:
    """Return the resolution of a page's picture: DOTS_PER_INCH, or what MOST_PIXELS allow."""
    width, height = page.get_size()
    most = math.sqrt(MOST_PIXELS / max(width * height, 1))  # dots per point
    return min(DOTS_PER_INCH, most * POINTS_PER_INCH)


def _picture(page: PdfPage, scale: float) -> bytes:
    """Return a picture of the page in grey, as PGM. scale: dots per point."""
    pixels = page.render(scale=scale, grayscale=True).to_numpy()  # (height, width[, 1]) uint8
    return b"P5 %d %d 255\n%b" % (pixels.shape[1], pixels.shape[0], pixels.tobytes())
