"""Which XML is in an office file, unpacked within limits?"""

from __future__ import annotations

import io
import zipfile

from birchbark.errors import InputError, first_line

MOST_PARTS, MOST_BYTES = 10_000, 100_000_000  # of XML, unpacked


def xml_parts(raw: bytes) -> dict[str, bytes]:
    """Return name → XML of the parts of an office file.

    Raises InputError if it is damaged, or larger than the limits.
    """
    parts: dict[str, bytes] = {}
    left = MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
            for name in names[: MOST_PARTS + 1]:
                with archive.open(name) as stream:
                    parts[name] = stream.read(left + 1)
                left -= len(parts[name])
                if left < 0 or len(parts) > MOST_PARTS:
                    wanted = f"at most {MOST_PARTS:,} parts and {MOST_BYTES:,} bytes, unpacked"
                    raise InputError("too large for one document", wanted=wanted)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile and its decompressors raise errors of many kinds
        raise InputError(f"the file is damaged: {first_line(error)}") from None
    return parts
