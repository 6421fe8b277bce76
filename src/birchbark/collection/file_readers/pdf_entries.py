"""What do the form fields and comments of a PDF page say?"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

MOST = 10_000  # annotations of a page that are read; a larger number is damage
_PASSWORD = 1 << 13  # flag of a text field (ISO 32000-1, table 228)


def entries(page: PdfPage) -> Iterator[str]:
    """Yield `name: value` for each form field that is filled in, and the text of each comment.

    Of boxes, those that are checked are given. Form fields are read if their document's forms were
    initialised. Passwords are left out.
    """
    from pypdfium2 import raw

    for index in range(min(raw.FPDFPage_GetAnnotCount(page), MOST)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            if kind == raw.FPDF_ANNOT_WIDGET and page.formenv:
                text = _field(page, annotation)
            elif kind in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_POPUP):
                text = ""
            else:
                text = _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
        if text := " ".join(text.split()):
            yield text


def _field(page: PdfPage, annotation: object) -> str:
    from pypdfium2 import raw

    form = page.formenv
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    boxes = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)
    written = (
        raw.FPDF_FORMFIELD_TEXTFIELD,
        raw.FPDF_FORMFIELD_COMBOBOX,
        raw.FPDF_FORMFIELD_LISTBOX,
    )
    if kind in boxes:
        shown = bool(raw.FPDFAnnot_IsChecked(form, annotation))
    else:
        is_password = raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD
        shown = kind in written and not (kind == raw.FPDF_FORMFIELD_TEXTFIELD and is_password)
    value = _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation) if shown else ""
    name = _string(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)  # for people
    name = name or _string(raw.FPDFAnnot_GetFormFieldName, form, annotation)
    return f"{name}: {value}" if name and value.strip() else value


def _string(get: Callable[..., int], *of: object) -> str:
    """Return the text that a function of PDFium writes to a buffer, as UTF-16 with a final NUL."""
    from pypdfium2 import raw

    size = get(*of, None, 0)
    buffer = ctypes.create_string_buffer(size)
    get(*of, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[: max(0, size - 2)].decode("utf-16-le", "replace")
