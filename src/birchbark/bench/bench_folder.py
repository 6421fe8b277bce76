"""What does a bench have on disk? Questions, runs, judgments and the report.

    NAME.bench/
      bench.json        what each run was made from and its checksum, with the words of each
                        question and the time that it took; the words of each question that was
                        judged; and how many questions were to be drafted
      questions.tsv     id TAB text; people may edit it
      drafted.qrels     the document whose words each drafted question has
      runs/SYSTEM.run   a run in TREC format for each system
      judgments.qrels   grades that a person gave, from 0 to 3, in TREC format
      report.html
      lock              locked by the process that uses the folder

Each file but the lock is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from birchbark.artifact import (
    TEMPORARY,
    fingerprint,
    json_checksum,
    lock,
    new_file,
    read_json,
    write_json,
)
from birchbark.bench.draft import DraftedQuestion
from birchbark.bench.rank_questions import SystemRun
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run, write_run
from birchbark.errors import ArtifactError, InputError
from birchbark.records import Qrels, Query, Ranking, Run

STATE, LOCK = "bench.json", "lock"
GRADES = range(4)
Grades = dict[str, dict[str, int]]  # query_id → doc_id → grade


class BenchFolder:
    """The files of a bench. One process at a time may use it, until it is closed.

    Raises InputError if the folder holds files of something else, and ArtifactError if another
    process uses it.
    """

    def __init__(self, path: Path) -> None:
        files = {file.name for file in path.glob("*") if not file.name.startswith(TEMPORARY)}
        if STATE not in files and files - {LOCK}:  # LOCK alone: a process ended at the beginning
            raise InputError(
                "is not a bench", where=str(path), remedy="choose another folder: --to DIR"
            )
        path.mkdir(parents=True, exist_ok=True)
        self.path, self._writing = path, Lock()
        with ExitStack() as stack:
            stack.callback(lock(path / LOCK, "bench").close)
            if not (path / STATE).exists():
                write_json(path / STATE, {"systems": {}, "judged": {}})
            self._state: dict[str, Any] = read_json(path / STATE, "bench")
            if not _is_sound(self._state):
                raise ArtifactError("damaged bench: not what was written", where=str(path / STATE))
            _ = self.judgments  # refused before long work begins if they are damaged
            self._locked = stack.pop_all()

    def close(self) -> None:
        """Let other processes use the folder."""
        self._locked.close()

    @property
    def has_questions(self) -> bool:
        """Whether there are questions."""
        return (self.path / "questions.tsv").exists()

    @property
    def questions(self) -> list[Query]:
        """The questions, in the order of the file, with single blanks between words.

        Raises InputError if a question was judged in other words.
        """
        file = self.path / "questions.tsv"
        questions, grades = list(map(_single_blanks, read_queries(file))), self.judgments.grades
        for query in questions:
            judged = self._state["judged"].get(query.query_id, query.text)
            if judged.split() != query.text.split() and query.query_id in grades:
                raise InputError(
                    f"question {query.query_id} was judged in other words",
                    where=str(file),
                    wanted=judged,
                    found=query.text,
                    remedy="give the new question another id",
                )
        return questions

    def write_questions(self, questions: Iterable[Query]) -> None:
        """Replace the questions. Raises InputError for one that has weights instead of words."""
        questions = list(questions)
        for query in questions:
            if query.weights is not None:
                raise InputError("has weights instead of words", where=f"query {query.query_id}")
        with new_file(self.path / "questions.tsv") as out:
            for query in map(_single_blanks, questions):
                out.write(f"{query.query_id}\t{query.text}\n")

    def write_report(self, page: str) -> Path:
        """Store the report, and return its path."""
        with new_file(self.path / "report.html") as out:
            out.write(page)
        return self.path / "report.html"

    @property
    def count(self) -> int:
        """How many questions were to be drafted, or else how many there are."""
        count: int = self._state.get("count", len(self.questions))
        return count

    def write_drafted(self, drafted: Iterable[DraftedQuestion], count: int) -> None:
        """Store drafted questions, and the documents that they are from.

        count: how many were to be drafted.
        """
        drafted = list(drafted)
        self._store(count=count)
        _write_grades(
            self.path / "drafted.qrels", {d.query.query_id: {d.doc_id: 1} for d in drafted}
        )
        self.write_questions(d.query for d in drafted)

    @property
    def sources(self) -> Mapping[str, str]:
        """The id of each drafted question → that of the document that it is from."""
        grades = _grades(self.path / "drafted.qrels")
        return {query_id: doc_id for query_id, judged in grades.items() for doc_id in judged}

    @property
    def judgments(self) -> Qrels:
        """The grades that a person has given, which may have been edited in their file meanwhile.

        Raises InputError for a damaged file, and for grades that are out of range.
        """
        grades = _grades(path := self.path / "judgments.qrels")
        for query_id, judged in grades.items():
            for doc_id, grade in judged.items():
                if grade not in GRADES:
                    raise InputError(
                        f"grade of query {query_id}, document {doc_id} is out of range",
                        where=str(path),
                        wanted="0 to 3",
                        found=str(grade),
                    )
        return Qrels(grades)

    def judge(self, query: Query, doc_id: str, grade: int | None) -> None:
        """Store a person's grade, from 0 to 3; None removes it. On disk when this returns."""
        query_id = query.query_id
        if grade is not None and grade not in GRADES:
            raise InputError("grade is out of range", wanted="0 to 3", found=str(grade))
        with self._writing:
            changed = {name: dict(judged) for name, judged in self.judgments.grades.items()}
            judged = changed.setdefault(query_id, {})
            if grade is None:
                judged.pop(doc_id, None)
            else:
                judged[doc_id] = grade
            changed = {name: judged for name, judged in changed.items() if judged}
            self._store(judged={**self._state["judged"], query_id: query.text})
            _write_grades(self.path / "judgments.qrels", changed)

    def run(self, tag: str, made_from: Mapping[str, Any]) -> SystemRun:
        """Return what a system has found.

        Nothing if it was made from something else, or if the process ended while storing it.
        """
        known, file = self._state["systems"].get(tag, {}), self._run_file(tag)
        is_known = known.get("made_from") == json_checksum(made_from) and file.exists()
        if not is_known or known.get("run") != fingerprint(file):
            return SystemRun(Run({}, tag), {}, {})
        try:
            rankings = read_run(file).rankings if file.stat().st_size else {}
        except InputError:  # damaged: made again
            return SystemRun(Run({}, tag), {}, {})
        empty = {query_id: Ranking.of([], []) for query_id in known["asked"]}
        return SystemRun(Run({**empty, **rankings}, tag), known["asked"], known["seconds"])

    def write_run(self, tag: str, made_from: Mapping[str, Any], found: SystemRun) -> None:
        """Store what a system has found."""
        checksum = json_checksum(made_from)
        entry = {"made_from": checksum, "asked": found.asked, "seconds": found.seconds}
        with self._writing:
            write_run(found.run, self._run_file(tag))
            entry["run"] = fingerprint(self._run_file(tag))
            self._store(systems={**self._state["systems"], tag: entry})

    def _store(self, **changes: Mapping[str, Any] | int) -> None:
        self._state = {**self._state, **changes}
        write_json(self.path / STATE, self._state)

    def _run_file(self, tag: str) -> Path:
        return self.path / "runs" / f"{tag}.run"


def _is_sound(state: Any) -> bool:
    """Whether the contents of STATE have the form that is written."""
    try:
        systems = state["systems"].values()
        return isinstance(state["judged"], dict) and all(
            isinstance(system["made_from"], str)
            and system["asked"].keys() == system["seconds"].keys()
            and all(isinstance(seconds, float) for seconds in system["seconds"].values())
            for system in systems
        )
    except (AttributeError, KeyError, TypeError):
        return False


def _grades(path: Path) -> Grades:
    """Return the grades of a file; none if it does not exist or is empty."""
    if not path.exists() or not path.stat().st_size:
        return {}
    return read_qrels(path).to_dict()


def _write_grades(path: Path, grades: Grades) -> None:
    with new_file(path) as out:
        for query_id, judged in grades.items():
            out.writelines(f"{query_id} 0 {doc_id} {grade}\n" for doc_id, grade in judged.items())


def _single_blanks(query: Query) -> Query:
    return replace(query, text=" ".join(query.text.split()))
