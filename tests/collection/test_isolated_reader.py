"""Does a file that hangs, fills the memory or ends its process cost nothing but itself?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from errno import ENOSPC
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from birchbark import process_limits
from birchbark.collection.files import folder, isolated_process, isolated_reader
from birchbark.collection.files.file_documents import Part
from birchbark.collection.files.folder import read_folder
from birchbark.collection.files.isolated_reader import IsolatedReader
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError, UnreadableError
from birchbark.process_limits import PACKAGES
from birchbark.records import Document
from birchbark.systems import allow_open_files
from office_files import xlsx

# Runs in the process that reads: texts with these words have what no library is known to have.
HOSTILE = """
import os, pathlib, re, signal
from birchbark.collection.file_readers import file

decode_text, times, costly = file.decode_text, os.times, []

def decode(raw, *arguments, **options):
    if b"endless" in raw:
        if "STARTED" in os.environ:
            pathlib.Path(os.environ["STARTED"]).write_text(str(os.getpid()))
        re.match("(a+)+b", "a" * 99)  # no other code of Python runs meanwhile
    if b"immense" in raw:
        bytearray(1 << 40)
    if b"damaging" in raw:
        os.kill(os.getpid(), signal.SIGSEGV)
    if b"unlucky" in raw:
        os.kill(os.getpid(), signal.SIGKILL)
    if b"talkative" in raw:
        print("{}", flush=True)
    if b"costly" in raw:  # of 1,000 s of processor time
        costly.append(1000)
    return decode_text(raw, *arguments, **options)

file.decode_text = decode
os.times = lambda: (*times()[:3], sum(costly), 0)
"""


@pytest.fixture(autouse=True)
def hostile_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process that reads meet the texts above, within a second."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HOSTILE)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setattr(isolated_reader, "MOST_SECONDS", 1)


def written(folder: Path, **texts: str) -> Path:
    """Return a folder in `folder` with a file for each text."""
    (folder / "files").mkdir()
    for name, text in texts.items():
        (folder / "files" / f"{name}.txt").write_text(text)
    return folder / "files"


@pytest.mark.parametrize(
    ("word", "kind", "message"),
    [
        ("endless", InputError, "it took longer than 1 s of processor time to read it"),
        ("immense", InputError, "it needs more than 4,000,000,000 bytes of memory"),
        ("damaging", InputError, "the process that reads it was ended by signal 11"),
        ("unlucky", UnreadableError, "the process that reads it was killed"),
    ],
)
def test_file_costs_only_itself(
    word: str, kind: type[InputError], message: str, tmp_path: Path
) -> None:
    """The files before and after it are read, and the error names it."""
    folder = written(tmp_path, a="before", b=f"an {word} file", c="after")
    intake = Intake()
    assert [d.fields["text"] for _, d in read_folder(folder, intake)] == ["before", "after"]
    assert [(type(e), str(e)) for e in intake.skipped] == [(kind, f"{folder / 'b.txt'}: {message}")]


def mail(*attached: str) -> bytes:
    """Return an e-mail with these texts attached, as 0.txt, 1.txt and so on."""
    message = EmailMessage()
    message["Subject"] = "files"
    message.set_content("see there")
    for number, text in enumerate(attached):
        message.add_attachment(text.encode(), "text", "plain", filename=f"{number}.txt")
    return bytes(message)


def read(folder: Path, *attached: str) -> tuple[list[str], Intake]:
    """Read an e-mail with these texts attached, and a file after it; return ids, and the intake."""
    files = written(folder, b="other")
    (files / "a.eml").write_bytes(mail(*attached))
    intake = Intake()
    return [document.doc_id for _, document in read_folder(files, intake)], intake


def test_attachment_costs_only_itself(tmp_path: Path) -> None:
    """The e-mail and its other attachments are read once."""
    found, intake = read(tmp_path, "first", "an endless one", "third")
    assert found == ["a.eml", "a.eml/0.txt", "a.eml/2.txt", "b.txt"]
    assert [error.where for error in intake.skipped] == [f"{tmp_path}/files/a.eml/1.txt"]


def test_rest_of_hostile_file_is_not_read(tmp_path: Path) -> None:
    """Three attachments may end the process; what follows is not read, which is told."""
    found, intake = read(tmp_path, *["a damaging one"] * 4, "last")
    assert found == ["a.eml", "b.txt"]
    assert len(intake.skipped) == 4
    assert str(intake.skipped[-1]) == (
        f"{tmp_path}/files/a.eml: not read after 1 of its documents, because 3 files in it "
        "failed (divide it into several files)"
    )


def test_attachments_share_the_time_for_a_file(tmp_path: Path) -> None:
    """When it is used up, the attachments until then remain, and the rest is told."""
    found, intake = read(tmp_path, "first", *["a costly one"] * 3)
    assert found == ["a.eml", "a.eml/0.txt", "a.eml/1.txt", "a.eml/2.txt", "b.txt"]
    assert [str(error) for error in intake.skipped] == [
        f"{tmp_path}/files/a.eml: not read after 4 of its documents, because it takes more "
        "than 1,200 s of processor time (divide it into several files)"
    ]


def test_processes_share_the_time_for_a_file(tmp_path: Path) -> None:
    """What a process took that has ended counts for the next one, which reads the file again."""
    found, intake = read(tmp_path, "a costly one", "a damaging one", "last")
    assert found == ["a.eml", "a.eml/0.txt", "b.txt"]
    assert [error.what for error in intake.skipped] == [
        "the process that reads it was ended by signal 11",
        "not read after 2 of its documents, because it takes more than 1,200 s of processor time",
    ]


def test_notes_until_the_time_was_up_remain(tmp_path: Path) -> None:
    """The notes about attachments of other types remain, for example."""
    message = message_from_bytes(mail("a costly one"), policy=default)
    message.add_attachment(b"?", "image", "png", filename="a.png")
    for name in ("c.txt", "d.txt"):
        message.add_attachment(b"a costly one", "text", "plain", filename=name)
    files, intake = written(tmp_path), Intake()
    (files / "a.eml").write_bytes(bytes(message))
    assert len(list(read_folder(files, intake))) == 3
    assert intake.notes["attachment of another type not read: .png"] == 1


def test_attachments_share_the_characters_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text that exceeds them is cut, what follows is not read, and both are told."""
    monkeypatch.setattr(isolated_reader, "MOST_CHARACTERS", 3_500)
    monkeypatch.setattr(isolated_reader, "CHARACTERS_PER_BYTE", 0)
    files = written(tmp_path, b="3" * 5_000, c="other")
    (files / "a.eml").write_bytes(mail("1" * 1_000, "2" * 1_000, "last"))
    intake = Intake()
    texts = {document.doc_id: document.text for _, document in read_folder(files, intake)}
    assert list(texts) == ["a.eml", "a.eml/0.txt", "a.eml/1.txt", "b.txt", "c.txt"]
    assert texts["a.eml/0.txt"] == "1" * 1_000
    assert set(texts["a.eml/1.txt"]) == {"2"}
    assert 100 < len(texts["a.eml/1.txt"]) < 1_000
    assert 2_800 < len(texts["b.txt"]) < 3_000
    told = "only 3,500 characters of it are read; each document counts as 500"
    told += " (divide it into several files)"
    assert [str(e) for e in intake.skipped] == [f"{files / n}: {told}" for n in ("a.eml", "b.txt")]


def test_a_mailbox_of_tiny_messages_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve kilobytes can be unpacked to half a million of them."""
    monkeypatch.setattr(isolated_reader, "MOST_CHARACTERS", 5_000)
    monkeypatch.setattr(isolated_reader, "CHARACTERS_PER_BYTE", 0)
    files, intake = written(tmp_path), Intake()
    (files / "many.mbox").write_bytes(b"From \nA:\n\n\n\n" * 1_000)
    assert 5 < len(list(read_folder(files, intake))) <= 10
    assert [error.what for error in intake.skipped] == [
        "only 5,000 characters of it are read; each document counts as 500"
    ]


def test_the_end_of_a_very_long_title_is_text(tmp_path: Path) -> None:
    """Nothing is lost, and no answer or passage repeats it."""
    files = written(tmp_path)
    (files / "a.md").write_text(f"# {'t' * 3_000}\n\nThe text.\n")
    ((_, document),) = read_folder(files, Intake())
    assert document.title == "t" * 1_000
    assert document.text.startswith("t" * 2_000 + "\n")
    assert document.text.endswith("The text.")


def test_large_files_may_have_more_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty for each byte, besides those of any file."""
    monkeypatch.setattr(isolated_reader, "MOST_CHARACTERS", 2_000)
    files, intake = written(tmp_path, a="1" * 5_000), Intake()
    assert [len(document.text) for _, document in read_folder(files, intake)] == [5_000]
    assert not intake.skipped


def test_answers_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that writes more is ended, and costs only the file that it reads."""
    monkeypatch.setattr(isolated_reader, "MOST_CHARACTERS", 2_000)
    monkeypatch.setattr(isolated_reader, "CHARACTERS_PER_BYTE", 0)
    monkeypatch.setattr(isolated_reader, "BYTES_PER_CHARACTER", 1)
    files = written(tmp_path, a="before", b="½" * 1_500, c="after")
    intake = Intake()
    assert [d.text for _, d in read_folder(files, intake)] == ["before", "after"]
    told = f"{files / 'b.txt'}: the process that reads it wrote more than 2,000 bytes"
    assert [str(error) for error in intake.skipped] == [told]


@pytest.mark.parametrize(
    ("module", "name", "error", "told"),
    [
        (folder, "read_limited", MemoryError(), "there is not enough memory to read it"),
        (isolated_reader, "_part", RuntimeError("why"), "cannot be read: RuntimeError: why"),
    ],
)
def test_any_error_costs_only_its_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    error: Exception,
    told: str,
) -> None:
    """An error may come when the file is opened, or when answers about it are read; it is told."""
    files, usual = written(tmp_path, a="before", b="bad", c="after"), getattr(module, name)

    def failing(found: Any, *others: Any) -> Any:
        if "b.txt" in str(others or found):
            raise error
        return usual(found, *others)

    monkeypatch.setattr(module, name, failing)
    intake = Intake()
    assert [d.text for _, d in read_folder(files, intake)] == ["before", "after"]
    assert [str(error) for error in intake.skipped] == [f"{files / 'b.txt'}: {told}"]


def test_trouble_of_the_system_is_not_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library needs a temporary file, and the disk is full: the file is read again later.

    The library may be one that reads the file, or another.
    """

    def parts(*_: Any) -> Iterator[Part]:
        yield Part("a.mbox/1", Document("a.mbox/1", {"text": "first"}))
        raise OSError(ENOSPC, "No space left on device")

    def read(_: Any) -> Any:
        raise OSError(ENOSPC, "No space left on device")

    usual = isolated_process.file_type(Path("a.mbox"))
    assert usual
    monkeypatch.setattr(isolated_process, "parts_of", parts)
    request = {"location": "x/a.mbox", "path": "a.mbox", "about": {}, "without": []}
    request |= {"encoding": "utf-8", "characters": 10_000}
    answers = list[dict[str, Any]]()
    isolated_process.answer(request, b"", 1, 1, answers.append)
    first, last = answers
    assert first["fields"]["text"] == "first"
    assert (last["doc_id"], last["retry"]) == ("a.mbox", True)
    what, where, *_, remedy = last["error"]
    assert (what, where) == ("cannot be read: No space left on device", "x/a.mbox")
    assert "temporary files" in remedy
    monkeypatch.undo()
    monkeypatch.setattr(isolated_process, "limit_time", lambda seconds: None)  # of this process
    monkeypatch.setattr(isolated_process, "file_type", lambda _: replace(usual, read=read))
    about = {"about": {"size": "1"}}
    isolated_process.answer(request | about, b"From x", 1, 1, answers.append)
    assert (answers[-1]["doc_id"], answers[-1]["retry"]) == ("a.mbox", True)


def test_a_process_that_cannot_start_is_not_the_files_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not begun to read: such as without memory, or while a package is replaced."""
    (tmp_path / "a.html").write_text("<p>birch")
    monkeypatch.setattr(isolated_reader, "MODULE", "birchbark.no_such_module")
    with pytest.raises(UnreadableError, match=r"a\.html: the process .* ended with exit code 1"):
        list(read_folder(tmp_path, Intake(skip_bad=False)))


def test_half_a_line_is_no_answer() -> None:
    """A process can end while it writes; why it has ended is told then."""
    assert list(isolated_reader._lines(BytesIO(b'{"a": 1}\n{"b"'), 20)) == [b'{"a": 1}\n']


def test_cells_that_are_far_apart_cost_one_file(tmp_path: Path) -> None:
    """The library of spreadsheets needs memory for all cells between them: terabytes."""
    pytest.importorskip("python_calamine")
    folder = written(tmp_path, b="after")
    (folder / "a.xlsx").write_bytes(xlsx({"S": {"A1": "a", "XFD1048576": "z"}}))
    intake = Intake()
    assert [document.doc_id for _, document in read_folder(folder, intake)] == ["b.txt"]
    assert "needs more than 4,000,000,000 bytes of memory" in str(intake.skipped[0])
    assert type(intake.skipped[0]) is InputError


@pytest.mark.parametrize("ahead", [0, 4, 1_000_000])
def test_large_files_are_not_read_ahead(
    ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All documents come in order all the same, and bad files are listed."""
    monkeypatch.setattr(folder, "MOST_BYTES_AHEAD", ahead)
    files = written(tmp_path, a="birch", b="a damaging file", c="oak", d="a bark canoe", e="elm")
    intake = Intake()
    found = [document.doc_id for _, document in read_folder(files, intake)]
    assert found == ["a.txt", "c.txt", "d.txt", "e.txt"]
    assert [Path(error.where).name for error in intake.skipped] == ["b.txt"]


def test_output_of_libraries_is_no_answer(tmp_path: Path) -> None:
    """What they print does not disturb the answers."""
    folder = written(tmp_path, a="a talkative file")
    assert [d.fields["text"] for _, d in read_folder(folder, Intake())] == ["a talkative file"]


@pytest.mark.parametrize("ahead", [0, 1_000_000])
def test_process_ends_with_the_reading(
    ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also ends when the reading is given up in the middle of a file, or of the next one."""
    monkeypatch.setattr(folder, "MOST_BYTES_AHEAD", ahead)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.eml").write_bytes(mail("first", "second"))
    (tmp_path / "files" / "b.txt").write_bytes(b"an endless file")
    documents = read_folder(tmp_path / "files", Intake())
    next(documents)
    command = ["pgrep", "-P", str(os.getpid()), "-f", isolated_reader.MODULE]
    assert subprocess.run(command, capture_output=True, check=False).stdout
    documents.close()  # type: ignore[attr-defined]
    assert not subprocess.run(command, capture_output=True, check=False).stdout


def has_ended(process: int) -> bool:
    """Return whether a process has ended, even if nobody has asked for its exit code."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends when it next writes")
def test_process_ends_with_a_parent_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends even while it reads a file for two minutes."""
    started = tmp_path / "started"
    monkeypatch.setenv("STARTED", str(started))
    read = f"list(read_folder(Path({str(written(tmp_path, a='an endless file'))!r}), Intake()))"
    imports = (
        "from pathlib import Path",
        "from birchbark.collection.files.folder import read_folder",
        "from birchbark.collection.parsing.intake import Intake",
    )
    path = os.pathsep.join([str(PACKAGES), os.environ["PYTHONPATH"]])
    command = [sys.executable, "-c", "\n".join([*imports, read])]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}) as parent:
        wait_until(lambda: started.exists() and bool(started.read_text()))
        reader = int(started.read_text())
        assert not has_ended(reader)
        parent.kill()
    wait_until(lambda: has_ended(reader))


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for less than the time for a document."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no pipe tells of the parent's end")
def test_a_process_with_many_open_files_starts_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe that they inherit may then have a number above 1,023."""
    import fcntl

    allow_open_files()
    pipe = os.pipe

    def numbered_high() -> tuple[int, ...]:
        ends = pipe()
        high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 2_000) for end in ends)
        for end in ends:
            os.close(end)
        return high

    monkeypatch.setattr(process_limits.os, "pipe", numbered_high)
    assert [d.doc_id for _, d in read_folder(written(tmp_path, a="birch"), Intake())] == ["a.txt"]


def test_a_request_that_cannot_be_sent_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next file is read by another one."""
    begun = (Path("a.txt"), b"bark", "a.txt", {"size": "4"}, Counter[str]())

    def fails(*_: object) -> str:
        raise MemoryError

    with IsolatedReader() as reader:
        with monkeypatch.context() as patch:
            patch.setattr(isolated_reader.json, "dumps", fails)
            with pytest.raises(MemoryError):
                reader.begin(*begun)
        file = [part.doc_id for part in reader.begin(*begun)]
    assert file == ["a.txt"]
    command = ["pgrep", "-P", str(os.getpid()), "-f", isolated_reader.MODULE]
    assert not subprocess.run(command, capture_output=True, check=False).stdout


def test_documents_precede_an_error_of_the_walk(tmp_path: Path) -> None:
    """A name that is not Unicode, after a file, is an error after its documents."""
    files = written(tmp_path, a="birch")
    (files / os.fsdecode(b"b\xff.txt")).write_text("oak")
    found = []
    with pytest.raises(InputError, match="not valid Unicode"):
        for _, document in read_folder(files, Intake(skip_bad=False)):
            found.append(document.doc_id)
    assert found == ["a.txt"]
