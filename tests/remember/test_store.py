"""Is no pair scored twice, no score lost but the last batch's, and none ever wrong?"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.runs import write_run
from birchbark.combine.aggregate import Max, Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import ArtifactError, InputError
from birchbark.index.reader import Index
from birchbark.pipeline import deadline
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.records import Document, Float32s, Ids, Query, Ranking, Segment
from birchbark.remember.file import LONGEST_TORN_END, FileHead, keys_of
from birchbark.remember.folder import entries, prune
from birchbark.remember.lookup import Lookup
from birchbark.remember.remembering import Remembering
from birchbark.remember.store import ScoreStore
from birchbark.retrieve.first_stage import rank_queries
from birchbark.score.model import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.segment.windows import Windows
from conftest import DOCUMENTS, WordScorer

RECORD = FileHead("", "", "").record.itemsize

QUERIES = [Query("1", "birch river"), Query("2", "iron engine"), Query("3", "zeppelin")]
TEXTS = [f"birch {i}" + " river" * (i % 3) for i in range(40)]


class Counting(WordScorer):
    """Keeps what it is asked; scores with bits that float32 cannot spell in short."""

    def __init__(self, fingerprint: str = "counting") -> None:
        super().__init__()
        self.fingerprint = fingerprint
        self.asked: list[tuple[str, str]] = []

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        texts = [self.text(piece) for piece in pieces]
        self.asked += [(query, text) for text in texts]
        seeds = [f"{self.fingerprint}|{query}|{text}" for text in texts]
        return np.array([random.Random(seed).random() for seed in seeds], np.float32)


def scored(directory: Path, query: str, texts: Sequence[str], fingerprint: str = "counting") -> int:
    """How many of `texts` had to be scored; the scores are those of a fresh scorer, bit by bit."""
    inner = Counting(fingerprint)
    with ScoreStore(directory, inner) as kept:
        found = score_texts(Remembering(inner, kept), query, texts)
    expected = score_texts(Counting(fingerprint), query, texts)
    assert found.dtype == np.float32
    assert found.tobytes() == expected.tobytes()
    return len(inner.asked)


def test_a_second_run_scores_nothing(tmp_path: Path) -> None:
    """In the same process or the next, in any order and company."""
    inner = Counting()
    with ScoreStore(tmp_path / "s", inner) as kept:
        scorer = Remembering(inner, kept)
        score_texts(scorer, "q", TEXTS[:20])
        score_texts(scorer, "q", TEXTS[:20])
        assert (len(inner.asked), scorer.scored, scorer.known) == (20, 20, 20)
        assert len(kept) == 20
    assert scored(tmp_path / "s", "q", TEXTS[19::-1]) == 0
    assert scored(tmp_path / "s", "q", TEXTS) == 20
    assert scored(tmp_path / "s", "q", TEXTS[::3] * 2) == 0
    assert scored(tmp_path / "s", "q", []) == 0


def test_equal_texts_are_scored_once(tmp_path: Path) -> None:
    """Those of one call, too."""
    assert scored(tmp_path / "s", "q", ["b", "a", "b", "b"]) == 2


def test_equal_sentences_are_scored_once_without_a_store(index: Index) -> None:
    """Here of two documents, each of which holds them twice."""
    inner = Counting()

    def segmenter(document: Document) -> list[Segment]:
        return Windows(1, 0)(DOCUMENTS[0]) * 2

    ranker = Ranker(inner, segmenter, Max())
    candidates = Ranking.of(["canoe", "bees"], [2.0, 1.0])
    race = Race(Readers(index, ranker), QUERIES[0], candidates, 2)
    race.run()
    hits = race.hits()
    assert len(inner.asked) == len(set(inner.asked)) > 3
    assert hits[0].evidence == hits[1].evidence


def test_no_other_checkpoint_or_query_shares_a_score(tmp_path: Path) -> None:
    """Each combination is scored for itself."""
    for fingerprint in ("one", "two"):
        for query in ("q", "Q", "q "):
            assert scored(tmp_path, query, TEXTS[:4], fingerprint) == 4
    for fingerprint in ("one", "two"):
        assert scored(tmp_path, "q", TEXTS[:4], fingerprint) == 0


def ids(text: str) -> Ids:
    return np.array([ord(letter) for letter in text], np.int32)


@given(st.lists(st.text(), min_size=3, max_size=3), st.lists(st.text(), min_size=3, max_size=3))
def test_keys_are_equal_for_equal_parts_only(one: list[str], other: list[str]) -> None:
    """No shifting of letters between fingerprint, query and segment."""
    keys = [keys_of(a, b, [ids(c)]).tobytes() for a, b, c in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def test_concatenations_do_not_collide() -> None:
    """Every way to cut one string in three has a key of its own."""
    whole = "a\0ab\0b"
    cuts = [(i, j) for i in range(len(whole) + 1) for j in range(i, len(whole) + 1)]
    keys = {keys_of(whole[:i], whole[i:j], [ids(whole[j:])]).tobytes() for i, j in cuts}
    assert len(keys) == len(cuts)


@pytest.mark.parametrize("labels", [None, 1])
def test_with_bert_the_store_changes_no_bit(
    index: Index,
    bert: Callable[..., Path],
    tmp_path: Path,
    labels: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without, with a new and with a full store; batches of one text each, or all at once."""
    directory, run = bert(labels=labels), rank_queries(index, QUERIES)
    plain = rerank(index, run, QUERIES, Ranker(load_scorer(directory)))
    for tokens in (1, 10_000):
        monkeypatch.setattr(deadline, "BATCH_TOKENS", tokens)
        for new in (True, False):
            scorer = load_scorer(directory)
            with ScoreStore(tmp_path / f"s{tokens}", scorer) as kept:
                known = Remembering(scorer, kept)
                assert rerank(index, run, QUERIES, Ranker(known)) == plain
            assert (known.scored > 0) == new


def test_weights_depth_and_aggregation_change_without_bert(index: Index, tmp_path: Path) -> None:
    """Only a, n and the aggregation differ: nothing is scored, results are those without store."""
    run = rank_queries(index, QUERIES)
    inner = Counting()
    with ScoreStore(tmp_path, inner) as kept:
        rerank(index, run, QUERIES, Ranker(Remembering(inner, kept)))
    for a, aggregation, depth in ((0.0, Max(), 100), (0.7, Top((1, 1)), 3)):
        idle = Counting()
        choices = {
            "aggregation": aggregation, "interpolation": Interpolation(a), "depth": depth
        }  # fmt: skip
        with ScoreStore(tmp_path, idle) as kept:
            found = rerank(index, run, QUERIES, Ranker(Remembering(idle, kept), **choices))  # type: ignore[arg-type]
        assert idle.asked == []
        assert found == rerank(index, run, QUERIES, Ranker(Counting(), **choices))  # type: ignore[arg-type]


def file_of(directory: Path) -> Path:
    return FileHead("counting", "", "").path(directory)


def test_a_torn_end_is_cut_off_at_any_byte(tmp_path: Path) -> None:
    """What was whole before is known; the rest is scored anew, and a note tells of the cut."""
    scored(tmp_path, "q", TEXTS[:5])
    path = file_of(tmp_path)
    before = path.stat().st_size
    scored(tmp_path, "q", TEXTS[:9])
    whole = path.read_bytes()
    for size in range(before, len(whole)):
        path.write_bytes(whole[:size])
        records, rest = divmod(size - before, RECORD)
        with ScoreStore(tmp_path, Counting(), write=False) as kept:
            assert len(kept) == 5 + records
        if rest:
            with pytest.warns(UserWarning, match=f"cut off {rest} bytes"):
                assert scored(tmp_path, "q", TEXTS[:9]) == 4 - records
        else:
            assert scored(tmp_path, "q", TEXTS[:9]) == 4 - records
        assert len(path.read_bytes()) == len(whole)


def test_an_end_of_garbage_is_cut_off(tmp_path: Path) -> None:
    """A power cut may leave zeros, or a record of which only a part was written."""
    scored(tmp_path, "q", TEXTS[:5])
    path = file_of(tmp_path)
    whole = path.read_bytes()
    for end in (bytes(7 * RECORD + 3), os.urandom(1000)):
        path.write_bytes(whole + end)
        with pytest.warns(UserWarning, match=f"cut off {len(end)} bytes"):
            assert scored(tmp_path, "q", TEXTS[:5]) == 0
        assert path.read_bytes() == whole


def test_a_bad_end_longer_than_a_kill_can_leave_is_refused(tmp_path: Path) -> None:
    """A byte lost in the middle shifts all records after it; they are not thrown away unasked."""
    scored(tmp_path, "q", TEXTS[:3])
    path = file_of(tmp_path)
    size = path.stat().st_size
    with path.open("ab") as out:
        out.write(bytes((LONGEST_TORN_END + 1) * RECORD))
    with pytest.raises(ArtifactError, match=f"byte {size}: damaged score"):
        ScoreStore(tmp_path, Counting())


def test_damage_before_the_end_is_refused(tmp_path: Path) -> None:
    """Any flipped bit, with file and offset; the remedy that is named works."""
    scored(tmp_path, "q", TEXTS[:3])
    path = file_of(tmp_path)
    whole = path.read_bytes()
    start = FileHead.read(path)[1]
    for bit in range(2 * RECORD * 8):
        bad = bytearray(whole)
        bad[start + bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        offset = start + bit // 8 // RECORD * RECORD
        with pytest.raises(ArtifactError, match=rf"{path.name}, byte {offset}: damaged score"):
            ScoreStore(tmp_path, Counting())
    os.truncate(path, offset)
    assert scored(tmp_path, "q", TEXTS[:3]) == 2
    for head in (
        b"",
        b"\xff\n",
        b"[]\n",
        b'{"form": "x"}\n',
        whole.replace(b"scores 2", b"scores 1"),
    ):
        path.write_bytes(head)
        with pytest.raises(ArtifactError, match="file of scores"):
            ScoreStore(tmp_path, Counting())


def test_one_writer_at_a_time_and_readers_beside_it(tmp_path: Path) -> None:
    """The second is told so; its lock is let go by a close, or by an error."""
    inner = Counting()
    with ScoreStore(tmp_path, inner) as kept:
        score_texts(Remembering(inner, kept), "q", TEXTS[:5])
        with pytest.raises(ArtifactError, match="another process is writing to this score store"):
            ScoreStore(tmp_path, Counting("other"))
        with pytest.raises(ArtifactError, match="another process"):
            prune(tmp_path, "share of the query's words")
        reader = Counting()
        with ScoreStore(tmp_path, reader, write=False) as beside:
            score_texts(Remembering(reader, beside), "q", TEXTS[:7])
            assert (len(reader.asked), beside.not_kept) == (2, 2)
        assert [e.pairs for e in entries(tmp_path)] == [5]
    file_of(tmp_path).write_bytes(b"")
    for _ in range(2):
        with pytest.raises(ArtifactError, match="damaged"):
            ScoreStore(tmp_path, Counting())


def test_one_lock_covers_several_scorers(tmp_path: Path) -> None:
    """Of one process; each keeps its own scores."""
    one, two = Counting("one"), Counting("two")
    with ScoreStore(tmp_path, one) as first, ScoreStore(tmp_path, two, under=first) as second:
        score_texts(Remembering(one, first), "q", TEXTS[:5])
        score_texts(Remembering(two, second), "q", TEXTS[:7])
    assert scored(tmp_path, "q", TEXTS[:7], "one") == 2
    assert scored(tmp_path, "q", TEXTS[:7], "two") == 0


def test_folders_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    """A file, a folder with something else, one that may not be written."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: no scores can be kept here"):
        ScoreStore(tmp_path / "file", Counting())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear bee")
    with pytest.raises(InputError, match=r"holds something else than scores.*letter.txt"):
        ScoreStore(tmp_path / "other", Counting())
    with pytest.raises(InputError, match="no score store here"):
        entries(tmp_path / "other")
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        if user == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(InputError, match="no scores can be kept here"):
                ScoreStore(folder, Counting())
        finally:
            os.seteuid(user)


def test_a_full_disk_costs_the_store_not_the_ranking(tmp_path: Path) -> None:
    """A warning says so; scores go on, whole records are left, and the next run adds the rest."""
    inner = Counting()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ScoreStore(tmp_path, inner) as kept:
        scorer = Remembering(inner, kept)
        score_texts(scorer, "q", TEXTS[:5])
        size = file_of(tmp_path).stat().st_size
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, hard))
            with pytest.warns(UserWarning, match="no longer kept: File too large"):
                found = score_texts(scorer, "q", TEXTS[:20])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        score_texts(scorer, "q", TEXTS[:30])
        assert (scorer.scored, kept.not_kept) == (30, 25)
    assert found.tobytes() == score_texts(Counting(), "q", TEXTS[:20]).tobytes()
    assert file_of(tmp_path).stat().st_size == size
    assert scored(tmp_path, "q", TEXTS[:30]) == 25


def test_a_checkpoint_is_forgotten_alone(tmp_path: Path) -> None:
    """By identifier or its beginning; a name that is no one's or several's changes nothing."""
    for fingerprint in ("one", "two"):
        scored(tmp_path, "q", TEXTS[:4], fingerprint)
    one, two = (FileHead(f, "", "").path(tmp_path).stem for f in ("one", "two"))
    for wrong, said in (
        ("nobody", "no checkpoint"),
        ("", "no"),
        ("share of the query's words", "several"),
    ):
        with pytest.raises(InputError, match=said):
            prune(tmp_path, wrong)
    assert prune(tmp_path, one[:6]).pairs == 4
    assert [e.checkpoint for e in entries(tmp_path)] == [two]
    assert scored(tmp_path, "q", TEXTS[:4], "two") == 0
    assert scored(tmp_path, "q", TEXTS[:4], "one") == 4


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=9), max_size=9))
def test_lookups_agree_with_a_dict(batches: list[list[tuple[int, int]]]) -> None:
    """Even where the first halves of keys are the same."""
    lookup, expected = Lookup(), dict[tuple[int, int], float]()
    for batch in batches:
        new = sorted({key for key in batch if key not in expected})
        values = [float(len(expected) + i) for i in range(len(new))]
        expected |= dict(zip(new, values, strict=True))
        if new:
            lookup.add(np.array(new, np.uint64), np.array(values, np.float32))
    asked = [(a, b) for a in range(5) for b in range(52)]
    scores, known = lookup.find(np.array(asked, np.uint64))
    found = {key: s for key, s, k in zip(asked, scores.tolist(), known, strict=True) if k}
    assert found == expected
    assert len(lookup) == len(expected)


def test_the_tokeniser_settings_are_part_of_the_fingerprint(bert: Callable[..., Path]) -> None:
    """Where they are read: lower case or not changes scores."""
    one, other = bert(labels=1), bert(labels=1)
    (other / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert load_scorer(one).fingerprint != load_scorer(other).fingerprint


RUN = """
import time
from birchbark.cli import main
from birchbark.pipeline import deadline
from birchbark.score.session import Session
from birchbark.remember.store import ScoreStore

run, add = Session.run, ScoreStore.add
deadline.BATCH_TOKENS = 12

def slow(*inputs):
    print("working", flush=True)
    time.sleep(0.01)  # so that kills come in between
    return run(*inputs)

def told(store, *new):
    add(store, *new)
    print(len(store), flush=True)

Session.run, ScoreStore.add = slow, told
main()
"""


@pytest.mark.slow
def test_fifty_kills_change_no_byte_of_the_run(index: Index, bert: Callable[..., Path]) -> None:
    """kill -9 at random moments of `rerank --scores`: what was kept stays, the run is the same."""
    model = bert(labels=1, positions=64)
    folder, kept = model.parent, model.parent / "kept"
    write_run(rank_queries(index, QUERIES), folder / "first.run")
    (folder / "q.tsv").write_text("".join(f"{q.query_id}\t{q.text}\n" for q in QUERIES))
    command = [
        sys.executable, "-c", RUN, "rerank", str(index.directory), "--run", "first.run",
        "--queries", "q.tsv", "--model", str(model), "--segments", "windows:3/2", "--threads", "1",
    ]  # fmt: skip
    subprocess.run([*command, "--output", "plain.run"], cwd=folder, check=True)
    expected = (folder / "plain.run").read_bytes()
    command += ["--scores", "kept", "--output", "kept.run"]
    chance, kills, resumed, finished, pairs = random.Random(3), 0, 0, 0, 0
    while kills < 50:
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        begun = child.stdout.readline()  # empty where nothing was left to score
        time.sleep(chance.uniform(0, 0.2) if begun else 0)
        if begun:
            child.kill()
        told = [int(line) for line in child.communicate()[0].split() if line.isdecimal()]
        now = entries(kept)[0].pairs
        assert now >= max([pairs, *told])
        resumed += pairs > 0
        pairs = now
        kills += child.returncode != 0
        if (folder / "kept.run").exists():  # done, if perhaps killed on its way out: begin anew
            assert (folder / "kept.run").read_bytes() == expected
            (folder / "kept.run").unlink()
            prune(kept, model.name + " cross-encoder")
            pairs, finished = 0, finished + 1
        else:
            assert child.returncode != 0
    assert min(resumed, finished) > 5
    subprocess.run(command, cwd=folder, check=True)
    assert (folder / "kept.run").read_bytes() == expected
