"""How is an e-mail read?"""

from __future__ import annotations

from email import message_from_bytes, policy
from email.message import EmailMessage

from birchbark.collection.files.file import Fields, File
from birchbark.collection.parsing.markup import plain_text
from birchbark.errors import InputError, first_line


def _text(message: EmailMessage, subtype: str) -> str:
    """Return the body of this type, plain or html; empty if there is none."""
    body = message.get_body((subtype,))
    return str(body.get_content()) if body else ""


def read_mail(file: File) -> Fields:
    """Return the subject, the text and the sender of a message (RFC 5322).

    Attachments are noted but not read. Raises InputError for a message that cannot be decoded.
    """
    try:
        message = message_from_bytes(file.raw, policy=policy.default)
        assert isinstance(message, EmailMessage)
        text = _text(message, "plain")
        text = text if text.strip() else plain_text(_text(message, "html"))[1]
        for _ in message.iter_attachments():
            file.intake.note("attachment of an e-mail not read")
        subject, sender = str(message["subject"] or ""), str(message["from"] or "")
    except Exception as error:  # the email package raises errors of many kinds for damaged headers
        raise InputError(f"the message cannot be decoded: {first_line(error)}") from None
    return {"title": subject, "text": text.replace("\r\n", "\n").strip(), "authors": sender}
