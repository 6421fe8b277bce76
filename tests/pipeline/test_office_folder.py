"""Does an index follow a folder of mail, spreadsheets and slides, document by document?"""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from birchbark.collection.files import folder_state
from birchbark.collection.files.folder_state import FolderSource
from birchbark.index.index import Index
from birchbark.pipeline.answers.sort_hits import sorted_by_field
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.upkeep.folder_index import (
    SyncedFolder,
    build_folder_index,
    folder_has_changed,
    sync_folder,
)
from birchbark.pipeline.upkeep.update_index import AddedDocuments, Changes, add_documents
from conftest import WordScorer
from office_files import odp, pptx, shape, xlsx

pytest.importorskip("python_calamine")
PAGE = "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files need not be old to count as unchanged."""
    monkeypatch.setattr(folder_state, "SETTLED_NS", 0)


def message(subject: str, text: str, sender: str, day: int) -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = subject, sender, "Bob <bob@example.org>"
    made["Date"], made["Message-ID"] = f"{day} Nov 2026 10:00:00 +0000", f"<{subject}@example.org>"
    made.set_content(text)
    return made


def mailbox(*messages: EmailMessage) -> bytes:
    line = b"From ann Tue Nov 24 10:00:00 2026\n"
    return b"".join(line + made.as_bytes() + b"\n" for made in messages)


def offer(price: float, *, with_slides: bool = True) -> bytes:
    """Return an e-mail with a spreadsheet and slides."""
    made = message("Offer", "See the prices.", "Ann <ann@example.org>", 3)
    table = xlsx({"Prices": {"A1": "Item", "B1": "Price", "A2": "Lamp", "B2": price}})
    kind = {"maintype": "application", "subtype": "octet-stream"}
    made.add_attachment(table, **kind, filename="prices.xlsx")
    if with_slides:
        made.add_attachment(pptx([shape("Our shop", "Fine lamps")]), **kind, filename="shop.pptx")
    made.set_boundary("cut")
    return made.as_bytes()


BEES = message("Bees", "Bees dance by the river.", "Cee <cee@example.org>", 1)
CANOES = message("Canoes", "Canoes are made of bark.", "Ann <ann@example.org>", 2)
BRIDGES = message("Bridges", "Bridges are of iron.", "Ann <ann@example.org>", 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with seven documents in three files."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "in.mbox").write_bytes(mailbox(BEES, CANOES))
    (folder / "offer.eml").write_bytes(offer(12))
    (folder / "talk.odp").write_bytes(odp([PAGE.format("The forest"), PAGE.format("Birches")]))
    return folder


@pytest.fixture
def index(folder: Path, tmp_path: Path) -> Path:
    build_folder_index(FolderSource((str(folder),)), tmp_path / "index")
    return tmp_path / "index"


def sync(index: Path) -> SyncedFolder:
    def change(changes: Changes) -> AddedDocuments:
        return add_documents(index, changes, lambda name: None)  # type: ignore[arg-type, return-value]

    return sync_folder(index, change)


def titles(index: Path) -> list[str]:
    return sorted(document.title for document in Index(index))


def test_every_part_is_a_document(index: Path) -> None:
    """Each has its own title, or else its name."""
    assert titles(index) == [
        "Bees", "Canoes", "Offer", "Our shop", "The forest", "prices.xlsx",
    ]  # fmt: skip


def test_only_what_has_changed_is_replaced(folder: Path, index: Path, tmp_path: Path) -> None:
    """A message that is new, deleted or unchanged in its mailbox, and one of two attachments.

    An e-mail that has changed is replaced, too, since its size is one of its fields.
    """
    (folder / "in.mbox").write_bytes(mailbox(CANOES, BRIDGES))
    (folder / "offer.eml").write_bytes(offer(123456789))
    assert sync(index) == SyncedFolder(new=1, replaced=2, deleted=1, unchanged=3)
    (folder / "offer.eml").write_bytes(offer(123456789, with_slides=False))
    assert sync(index) == SyncedFolder(new=0, replaced=1, deleted=1, unchanged=4)
    assert not folder_has_changed(index, [folder])
    build_folder_index(FolderSource((str(folder),)), tmp_path / "afresh")
    synced, afresh = ({d.doc_id: d.fields for d in Index(i)} for i in (index, tmp_path / "afresh"))
    assert synced == afresh
    (folder / "in.mbox").unlink()
    assert sync(index) == SyncedFolder(new=0, replaced=0, deleted=2, unchanged=3)


def test_mail_is_searched_filtered_and_sorted(index: Path) -> None:
    """Words of names find it, too; attachments have the sender and date of their e-mail."""
    searcher = Searcher(index, Ranker(WordScorer()))
    found = searcher.search("ann lamp bark", filters={"from": "Ann*"})
    titles = [hit.document.title for hit in sorted_by_field(found, "date").hits]
    assert (titles[0], set(titles[1:])) == ("Canoes", {"Offer", "prices.xlsx", "Our shop"})
    late = searcher.search("ann lamp bark", filters={"date": "2026-11-03.."}).hits
    assert {hit.document.title for hit in late} == {"Offer", "prices.xlsx", "Our shop"}
    assert searcher.search("bob@example.org").hits
