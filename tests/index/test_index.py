"""Does an index return what was indexed, for any division into parts, and detect damage?"""

from __future__ import annotations

import shutil
from collections import Counter
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import ArtifactError, InputError
from birchbark.index.arrays import map_array, save_array
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.layout import MANIFEST, Manifest
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.rm3 import RM3
from birchbark.text.analyzer import analyzer
from conftest import DOCUMENTS, WORDS

TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=9
)


@given(texts=TEXTS, part_tokens=st.sampled_from([1, 10, 1000]), forward=st.booleans())
def test_postings_match_the_texts(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], part_tokens: int, forward: bool
) -> None:
    """Frequencies, lengths and term vectors equal naive counts, for any division into parts."""
    documents = [Document(f"d{i}", {"text": text}) for i, text in enumerate(texts)]
    directory = tmp_path_factory.mktemp("law") / "i"
    schema = Schema(forward=forward)
    index = build_index(documents, directory, schema, part_tokens=part_tokens)
    counts = [Counter(analyzer("english").terms(text)) for text in texts]
    for document, count in zip(documents, counts, strict=True):
        part, number = index.locate(document.doc_id)
        field = index.parts[part].fields[0]
        assert index.term_vectors([document.doc_id], "contents") == [count]
        assert field.lengths[number] == sum(count.values())
        for term, tf in count.items():
            postings = field.postings(term)
            assert postings is not None
            assert postings.tfs[postings.docs.tolist().index(number)] == tf
    terms = set().union(*counts)
    frequencies = index.document_frequencies([*terms, "zeppelin"], "contents")
    assert frequencies == {term: sum(term in c for c in counts) for term in terms}
    assert index.totals("contents").tokens == sum(sum(c.values()) for c in counts)
    assert index.totals("contents").documents == sum(bool(c) for c in counts)
    assert [d.doc_id for d in index] == [d.doc_id for d in documents]


def test_documents_are_returned_in_the_requested_order(index: Index) -> None:
    """Every field is returned unchanged."""
    wanted = [DOCUMENTS[3], DOCUMENTS[0], DOCUMENTS[4]]
    assert index.documents([d.doc_id for d in wanted]) == wanted


ODD = ["a b", "tab\tid", "é日本", "x" * 300, "nul\0", "\N{HONEYBEE}", "'", "../up"]


def test_unusual_ids_and_texts_are_stored(tmp_path: Path) -> None:
    """Ids never become paths; texts may contain any Unicode character."""
    documents = [Document(odd, {"title": odd, "text": f"bee {odd}\n\r\0"}) for odd in ODD]
    index = build_index(documents, tmp_path / "i")
    assert index.documents(ODD) == documents


def test_documents_are_read_from_all_blocks_and_parts(tmp_path: Path) -> None:
    """Stored fields of a collection of several parts, each of several blocks."""
    documents = [Document(f"{i:05}", {"text": f"word{i} " * 40}) for i in range(500)]
    index = build_index(documents, tmp_path / "i", part_tokens=6000)
    assert len(index.parts) == 4
    assert len(index) == 500
    assert index.documents(["00499", "00000", "00250"]) == [
        documents[499],
        documents[0],
        documents[250],
    ]


def test_documents_without_terms_are_stored(tmp_path: Path) -> None:
    """They have no postings, and do not count in the average length."""
    index = build_index(
        [Document("a", {"text": ""}), Document("b", {"text": "the"})], tmp_path / "i"
    )
    assert len(index) == 2
    assert index.totals("contents").documents == 0


def test_fields_are_indexed_separately(tmp_path: Path) -> None:
    """Each indexed field joins its document fields."""
    fields = {"title": ["title"], "all": ["title", "text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    assert index.fields == ("title", "all")
    assert index.document_frequencies(["river"], "title") == {}
    assert index.document_frequencies(["river"], "all") == {"river": 3}
    with pytest.raises(InputError, match=r"no field 'body' to search.*title, all"):
        index.totals("body")


def test_a_frequency_above_65535(tmp_path: Path) -> None:
    """Frequencies are not capped."""
    index = build_index([Document("d", {"text": "bee " * 70_000})], tmp_path / "i")
    postings = index.parts[0].fields[0].postings("bee")
    assert postings is not None
    assert postings.tfs.tolist() == [70_000]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged index"),
        ("{}", "not an index"),
        (
            '{"format": "birchbark index", "version": 99}',
            "unsupported index version: expected 7, found 99",
        ),
        ('{"format": "birchbark index", "version": 7}', "checksum is wrong"),
    ],
)
def test_an_invalid_manifest_is_reported(tmp_path: Path, content: str, message: str) -> None:
    """It is damaged, of another program, or of another version."""
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(ArtifactError, match=message):
        Index(tmp_path)


def test_what_to_do_about_a_folder_that_is_no_index(tmp_path: Path) -> None:
    """Its index may be beside it, or be made; and a folder that is missing is said to be."""
    folder = tmp_path / "notes"
    with pytest.raises(InputError, match=r"no index here.*there is no such folder"):
        Index(folder)
    folder.mkdir()
    with pytest.raises(
        InputError, match=r"make one of this folder: birchbark index .*notes\.index"
    ):
        Index(folder)
    build_index(DOCUMENTS, tmp_path / "notes.index")
    with pytest.raises(InputError, match=r"the index of this folder is .*notes\.index"):
        Index(folder)


def test_an_array_of_an_impossible_type_is_damage(tmp_path: Path) -> None:
    save_array(tmp_path / "a.npy", np.arange(4, dtype="<u4"))
    raw = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(raw.replace(b"<u4", b"<e4"))
    with pytest.raises(ValueError, match="no valid header"):
        map_array(tmp_path / "a.npy")


def test_missing_and_damaged_files_are_reported(index: Index, tmp_path: Path) -> None:
    """Opening the index fails, and the error names the part."""
    shutil.copytree(index.directory, tmp_path / "i")
    lengths = next((tmp_path / "i").rglob("lengths.npy"))
    lengths.write_bytes(b"not an array")
    with pytest.raises(ArtifactError, match="part-000001-000: damaged index"):
        Index(tmp_path / "i")
    lengths.unlink()
    with pytest.raises(ArtifactError, match="damaged index"):
        Index(tmp_path / "i")


def test_a_damaged_block_of_stored_fields_is_reported(index: Index, tmp_path: Path) -> None:
    """A block that cannot be decompressed raises ArtifactError."""
    shutil.copytree(index.directory, tmp_path / "i")
    blocks = next((tmp_path / "i").rglob("texts.blocks"))
    blocks.write_bytes(b"\0" * blocks.stat().st_size)
    with pytest.raises(ArtifactError, match="block 0 is damaged"):
        Index(tmp_path / "i").documents(["canoe"])


def test_an_unknown_document_is_reported(index: Index) -> None:
    """The error suggests the most likely reason."""
    with pytest.raises(InputError, match=r"no document nessie.*another collection"):
        index.documents(["canoe", "nessie"])


def test_manifest_round_trips(index: Index, tmp_path: Path) -> None:
    """A manifest is read as it was written."""
    manifest = Manifest.read(index.directory)
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest


def test_arrays_are_memory_mapped(index: Index) -> None:
    """An index may therefore be larger than memory."""
    part = index.parts[0]
    for array in (part.lengths, part.postings.words, part.postings.starts):
        memory: Any = array
        while isinstance(memory, np.ndarray):
            memory = memory.base
        assert isinstance(memory.obj if isinstance(memory, memoryview) else memory, mmap)


@pytest.mark.parametrize(
    "name", ["terms.bytes", "doc_ids.bytes", "postings.words", "lengths.npy", "texts.blocks"]
)
def test_truncated_files_are_detected_on_opening(index: Index, tmp_path: Path, name: str) -> None:
    """Otherwise half a term table would look like an index without the missing terms."""
    shutil.copytree(index.directory, tmp_path / "i")
    file = next((tmp_path / "i").rglob(name))
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(ArtifactError, match="damaged index"):
        Index(tmp_path / "i")


def test_damaged_postings_are_reported(tmp_path: Path) -> None:
    """A wrong byte in a list never leads to reading or writing outside of an array."""
    documents = [Document(f"d{i:03}", {"text": "bee " + "honey " * (i % 3)}) for i in range(300)]
    build_index(documents, tmp_path / "i", Schema(forward=True))
    errors = 0
    for name in ("postings.words", "postings.starts.npy", "terms.offsets.npy", "forward.words"):
        file = next((tmp_path / "i").rglob(name))
        intact = file.read_bytes()
        for at in range(128 if name.endswith("npy") else 0, len(intact), 7):
            file.write_bytes(intact[:at] + bytes([intact[at] ^ 0xFF]) + intact[at + 1 :])
            try:
                index = Index(tmp_path / "i")
                assert len(rank_query(index, "bee honey", depth=5)) <= 300
                assert len(rank_query(index, "bee honey", FirstStage(expansion=RM3()))) <= 300
            except (ArtifactError, InputError):
                errors += 1
        file.write_bytes(intact)
    assert errors > 10


def test_the_last_list_is_not_read_beyond_its_end(tmp_path: Path) -> None:
    """One document of 1,023 terms fills the words to the last byte of a page."""
    text = " ".join(f"w{i}" for i in range(1023))
    index = build_index([Document("d", {"text": text})], tmp_path / "i")
    assert len(index.parts[0].postings.words) == 1024
    assert index.document_frequencies(("w999", "w1022"), "contents") == {"w999": 1, "w1022": 1}
    assert len(rank_query(index, text)) == 1


@pytest.mark.parametrize(
    "bad", [Document("", {"text": "x"}), Document("\ud800", {}), Document("a", {"text": "\udfff"})]
)
def test_invalid_documents_are_refused(tmp_path: Path, bad: Document) -> None:
    """The writer refuses them like the readers of files do; existing documents remain."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        with pytest.raises(InputError, match=r"empty id|lone surrogate"):
            writer.add(bad)
        writer.add(DOCUMENTS[1])
    assert [d.doc_id for d in Index(tmp_path / "i")] == ["canoe", "bees"]
