"""Does the score store spare the scorer, survive kills, and never return a wrong score?"""

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

from birchbark import deadline
from birchbark.collection.runs import write_run
from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import ArtifactError, InputError
from birchbark.index.index import Index
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import TopKScoring
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Float32s, Ids, Query, Ranking, Segment
from birchbark.retrieve.first_stage import rank_queries
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.score_cache import store as store_module
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.join_stores import join_stores
from birchbark.score_cache.score_file import MAX_TORN_RECORDS, FileHeader, pair_keys
from birchbark.score_cache.score_table import ScoreTable
from birchbark.score_cache.store import ScoreStore
from birchbark.score_cache.store_folder import entries, prune
from birchbark.segment.windows import Windows
from conftest import DOCUMENTS, READ_EVERYTHING, WordScorer

RECORD = FileHeader("", "", "").record.itemsize

QUERIES = [Query("1", "birch river"), Query("2", "iron engine"), Query("3", "zeppelin")]
TEXTS = [f"birch {i}" + " river" * (i % 3) for i in range(40)]


class Counting(WordScorer):
    """Records the pairs it scores; a score is random, but the same for equal pairs."""

    def __init__(self, fingerprint: str = "counting") -> None:
        super().__init__()
        self.fingerprint = fingerprint
        self.pairs: list[tuple[str, str]] = []

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        texts = [self.text(ids) for ids in token_ids]
        self.pairs += [(query, text) for text in texts]
        seeds = [f"{self.fingerprint}|{query}|{text}" for text in texts]
        return np.array([random.Random(seed).random() for seed in seeds], np.float32)


def scored(directory: Path, query: str, texts: Sequence[str], fingerprint: str = "counting") -> int:
    """Return how many of `texts` had to be scored; check all scores bit by bit."""
    inner = Counting(fingerprint)
    with ScoreStore(directory, inner) as store:
        scores = score_texts(CachedScorer(inner, store), query, texts)
    expected = score_texts(Counting(fingerprint), query, texts)
    assert scores.dtype == np.float32
    assert scores.tobytes() == expected.tobytes()
    return len(inner.pairs)


def test_a_second_run_scores_nothing(tmp_path: Path) -> None:
    """A second run, in the same or another process, scores nothing, in any order of texts."""
    inner = Counting()
    with ScoreStore(tmp_path / "s", inner) as store:
        scorer = CachedScorer(inner, store)
        score_texts(scorer, "q", TEXTS[:20])
        score_texts(scorer, "q", TEXTS[:20])
        assert (len(inner.pairs), scorer.misses, scorer.hits) == (20, 20, 20)
        assert len(store) == 20
    assert scored(tmp_path / "s", "q", TEXTS[19::-1]) == 0
    assert scored(tmp_path / "s", "q", TEXTS) == 20
    assert scored(tmp_path / "s", "q", TEXTS[::3] * 2) == 0
    assert scored(tmp_path / "s", "q", []) == 0


def test_equal_texts_are_scored_once(tmp_path: Path) -> None:
    """Equal texts are scored once, even within one call."""
    assert scored(tmp_path / "s", "q", ["b", "a", "b", "b"]) == 2


def test_equal_sentences_are_scored_once_without_a_store(index: Index) -> None:
    """Two documents hold the same sentences, each of them twice."""
    inner = Counting()

    def segmenter(document: Document) -> list[Segment]:
        return Windows(1, 0)(DOCUMENTS[0]) * 2

    ranker = Ranker(inner, segmenter, Top((1.0,)))
    candidates = Ranking.of(["canoe", "bees"], [2.0, 1.0])
    scoring = TopKScoring(RankerReaders(index, ranker), QUERIES[0].text, candidates, 2)
    scoring.run()
    hits = scoring.hits()
    assert len(inner.pairs) == len(set(inner.pairs)) > 3
    assert hits[0].evidence == hits[1].evidence


def test_other_scorers_and_queries_share_no_score(tmp_path: Path) -> None:
    """Each combination of scorer and query is scored separately."""
    for fingerprint in ("one", "two"):
        for query in ("q", "Q", "q "):
            assert scored(tmp_path, query, TEXTS[:4], fingerprint) == 4
    for fingerprint in ("one", "two"):
        assert scored(tmp_path, "q", TEXTS[:4], fingerprint) == 0


def add_many(folder: Path) -> None:
    """Add 150,000 scores, 1,000 at a time."""
    keys = np.arange(300_000, dtype=np.uint64).reshape(-1, 2)
    with ScoreStore(folder, Counting()) as store:
        for begin in range(0, len(keys), 1000):
            store.add(keys[begin : begin + 1000], np.zeros(1000, np.float32))


@pytest.mark.parametrize(("joins", "synced"), [(False, 33_000), (True, 32_768)])
def test_a_power_cut_loses_only_what_was_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: bool, synced: int
) -> None:
    """However fast scores are written, the zeros that it leaves at the end are truncated."""
    monkeypatch.setattr(store_module, "SYNC_SECONDS", float("inf"))
    if joins:
        add_many(tmp_path / "other")
    kept: list[int] = []  # bytes of the file that are on disk before each fsync
    real = os.fsync

    def fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.suffix == ".scores":
            safe = kept[-1] if kept else FileHeader.read(path)[1]
            content = path.read_bytes()
            cut = tmp_path / f"cut{len(kept)}"
            cut.mkdir()
            (cut / path.name).write_bytes(content[:safe] + bytes(len(content) - safe))
            kept.append(len(content))
        real(handle)

    with monkeypatch.context() as watched:
        watched.setattr(os, "fsync", fsync)
        if joins:
            join_stores(tmp_path / "s", tmp_path / "other")
        else:
            add_many(tmp_path / "s")
    left = []
    for number in range(len(kept)):
        with pytest.warns(UserWarning, match="truncated"):
            store = ScoreStore(tmp_path / f"cut{number}", Counting())
        left.append(len(store))
        store.close()
    assert left == [0, synced, 2 * synced, 3 * synced, 4 * synced]
    with ScoreStore(tmp_path / "s", Counting()) as store:
        assert len(store) == 150_000


def ids(text: str) -> Ids:
    return np.array([ord(letter) for letter in text], np.int32)


@given(st.lists(st.text(), min_size=3, max_size=3), st.lists(st.text(), min_size=3, max_size=3))
def test_keys_are_equal_for_equal_parts_only(one: list[str], other: list[str]) -> None:
    """Moving letters between fingerprint, query and segment changes the key."""
    keys = [pair_keys(a, b, [ids(c)]).tobytes() for a, b, c in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def test_concatenations_do_not_collide() -> None:
    """Every way to cut one string in three has a key of its own."""
    text = "a\0ab\0b"
    cuts = [(i, j) for i in range(len(text) + 1) for j in range(i, len(text) + 1)]
    keys = {pair_keys(text[:i], text[i:j], [ids(text[j:])]).tobytes() for i, j in cuts}
    assert len(keys) == len(cuts)


@pytest.mark.parametrize("labels", [None, 1])
def test_with_bert_the_store_changes_no_bit(
    index: Index,
    bert: Callable[..., Path],
    tmp_path: Path,
    labels: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores are bit-identical without a store, with an empty one and with a full one."""
    directory, run = bert(labels=labels), rank_queries(index, QUERIES)
    plain = rerank(index, run, QUERIES, Ranker(load_scorer(directory)))
    for tokens in (1, 10_000):
        monkeypatch.setattr(deadline, "TOKENS_AT_ONCE", tokens)
        for new in (True, False):
            scorer = load_scorer(directory)
            with ScoreStore(tmp_path / f"s{tokens}", scorer) as store:
                cached_scorer = CachedScorer(scorer, store)
                assert rerank(index, run, QUERIES, Ranker(cached_scorer)) == plain
            assert (cached_scorer.misses > 0) == new


def test_weights_depth_and_aggregation_change_without_bert(index: Index, tmp_path: Path) -> None:
    """Other settings need no new scores, and results are the same as without a store."""
    run = rank_queries(index, QUERIES)
    inner = Counting()
    with ScoreStore(tmp_path, inner) as store:
        rerank(index, run, QUERIES, Ranker(CachedScorer(inner, store)))
    for a, aggregation, depth in ((0.0, Top((1.0,)), 100), (0.7, Top((1, 1)), 3)):
        idle = Counting()
        choices = {
            "aggregation": aggregation, "interpolation": Interpolation(a), "depth": depth
        }  # fmt: skip
        with ScoreStore(tmp_path, idle) as store:
            result = rerank(index, run, QUERIES, Ranker(CachedScorer(idle, store), **choices))  # type: ignore[arg-type]
        assert idle.pairs == []
        assert result == rerank(index, run, QUERIES, Ranker(Counting(), **choices))  # type: ignore[arg-type]


def file_of(directory: Path) -> Path:
    return FileHeader("counting", "", "").path(directory)


def test_an_incomplete_end_is_truncated_at_any_byte(tmp_path: Path) -> None:
    """Complete records stay, the rest is scored again, and a warning reports it."""
    scored(tmp_path, "q", TEXTS[:5])
    path = file_of(tmp_path)
    before = path.stat().st_size
    scored(tmp_path, "q", TEXTS[:9])
    content = path.read_bytes()
    for size in range(before, len(content)):
        path.write_bytes(content[:size])
        records, rest = divmod(size - before, RECORD)
        with ScoreStore(tmp_path, Counting(), write=False) as store:
            assert len(store) == 5 + records
        if rest:
            with pytest.warns(UserWarning, match=f"truncated {rest} bytes"):
                assert scored(tmp_path, "q", TEXTS[:9]) == 4 - records
        else:
            assert scored(tmp_path, "q", TEXTS[:9]) == 4 - records
        assert len(path.read_bytes()) == len(content)


def test_garbage_at_the_end_is_truncated(tmp_path: Path) -> None:
    """A power cut may leave zeros or random bytes."""
    scored(tmp_path, "q", TEXTS[:5])
    path = file_of(tmp_path)
    content = path.read_bytes()
    for end in (bytes(7 * RECORD + 3), os.urandom(1000)):
        path.write_bytes(content + end)
        with pytest.warns(UserWarning, match=f"truncated {len(end)} bytes"):
            assert scored(tmp_path, "q", TEXTS[:5]) == 0
        assert path.read_bytes() == content


def test_an_invalid_end_longer_than_a_kill_can_leave_is_refused(tmp_path: Path) -> None:
    """A byte lost in the middle shifts all records after it; they are not deleted silently."""
    scored(tmp_path, "q", TEXTS[:3])
    path = file_of(tmp_path)
    size = path.stat().st_size
    for end in (size + (MAX_TORN_RECORDS + 1) * RECORD, 1 << 40):  # sparse: a TB is not read
        os.truncate(path, end)
        with pytest.raises(ArtifactError, match=f"byte {size}: damaged score"):
            ScoreStore(tmp_path, Counting())


def test_damage_before_the_end_is_refused(tmp_path: Path) -> None:
    """The error for any flipped bit names file and offset, and its remedy works."""
    scored(tmp_path, "q", TEXTS[:3])
    path = file_of(tmp_path)
    content = path.read_bytes()
    start = FileHeader.read(path)[1]
    for bit in range(2 * RECORD * 8):
        bad = bytearray(content)
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
        content.replace(b"scores 2", b"scores 1"),
        b"[" * 60_000 + b"\n",
        b'{"form": "x", "fingerprint": 5, "name": "", "kind": ""}\n',
        b'{"form": "x", "fingerprint": "\\ud800", "name": "", "kind": ""}\n',
        b'{"form": "x", "fingerprint": "", "name": [1], "kind": ""}\n',
        b'{"form": "x", "fingerprint": "", "name": "", "kind": "", "width": true}\n',
    ):
        path.write_bytes(head)
        with pytest.raises(ArtifactError, match="score file"):
            ScoreStore(tmp_path, Counting())
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ArtifactError, match="not a plain file"):
        ScoreStore(tmp_path, Counting())


def test_one_writer_at_a_time_and_any_number_of_readers(tmp_path: Path) -> None:
    """A second writer is refused; closing the store or an error releases the lock."""
    inner = Counting()
    with ScoreStore(tmp_path, inner) as store:
        score_texts(CachedScorer(inner, store), "q", TEXTS[:5])
        with pytest.raises(ArtifactError, match="another process is writing to this score store"):
            ScoreStore(tmp_path, Counting("other"))
        with pytest.raises(ArtifactError, match="another process"):
            prune(tmp_path, "share of the query's words")
        reader = Counting()
        with ScoreStore(tmp_path, reader, write=False) as read_only:
            score_texts(CachedScorer(reader, read_only), "q", TEXTS[:7])
            assert (len(reader.pairs), read_only.unsaved) == (2, 2)
        assert [e.pairs for e in entries(tmp_path)] == [5]
    file_of(tmp_path).write_bytes(b"")
    for _ in range(2):
        with pytest.raises(ArtifactError, match="damaged"):
            ScoreStore(tmp_path, Counting())


def test_one_lock_covers_several_scorers(tmp_path: Path) -> None:
    """Scorers of one process can share the lock; each has its own scores."""
    one, two = Counting("one"), Counting("two")
    with ScoreStore(tmp_path, one) as first, ScoreStore(tmp_path, two, locked_by=first) as second:
        score_texts(CachedScorer(one, first), "q", TEXTS[:5])
        score_texts(CachedScorer(two, second), "q", TEXTS[:7])
    assert scored(tmp_path, "q", TEXTS[:7], "one") == 2
    assert scored(tmp_path, "q", TEXTS[:7], "two") == 0


def test_folders_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    """A file, a folder with other files, and one that may not be written."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: scores cannot be stored here"):
        ScoreStore(tmp_path / "file", Counting())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear bee")
    with pytest.raises(InputError, match=r"files that are not scores.*letter.txt"):
        ScoreStore(tmp_path / "other", Counting())
    with pytest.raises(InputError, match="no score store here"):
        entries(tmp_path / "other")
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        if user == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(InputError, match="scores cannot be stored here"):
                ScoreStore(folder, Counting())
        finally:
            os.seteuid(user)


def test_a_full_disk_does_not_stop_the_ranking(tmp_path: Path) -> None:
    """A warning says so, complete records stay, and the next run stores the rest."""
    inner = Counting()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ScoreStore(tmp_path, inner) as store:
        scorer = CachedScorer(inner, store)
        score_texts(scorer, "q", TEXTS[:5])
        size = file_of(tmp_path).stat().st_size
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, hard))
            with pytest.warns(UserWarning, match="no longer stored: File too large"):
                scores = score_texts(scorer, "q", TEXTS[:20])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        score_texts(scorer, "q", TEXTS[:30])
        assert (scorer.misses, store.unsaved) == (30, 25)
    assert scores.tobytes() == score_texts(Counting(), "q", TEXTS[:20]).tobytes()
    assert file_of(tmp_path).stat().st_size == size
    assert scored(tmp_path, "q", TEXTS[:30]) == 25


def test_a_disk_without_a_free_byte_does_not_stop_the_ranking(tmp_path: Path) -> None:
    """Not even the header of a new file can be written; the next run stores all scores."""
    inner = Counting()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        with (
            pytest.warns(UserWarning, match="no longer stored: File too large"),
            ScoreStore(tmp_path, inner) as store,
        ):
            scores = score_texts(CachedScorer(inner, store), "q", TEXTS[:20])
            assert store.unsaved == 20
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert scores.tobytes() == score_texts(Counting(), "q", TEXTS[:20]).tobytes()
    assert scored(tmp_path, "q", TEXTS[:20]) == 20


def test_pruning_deletes_the_scores_of_one_scorer(tmp_path: Path) -> None:
    """Given by the start of its identifier; a name of none or of several deletes nothing."""
    for fingerprint in ("one", "two"):
        scored(tmp_path, "q", TEXTS[:4], fingerprint)
    one, two = (FileHeader(f, "", "").path(tmp_path).stem for f in ("one", "two"))
    for wrong, message in (
        ("nobody", "no scorer matches"),
        ("", "no"),
        ("share of the query's words", "several"),
    ):
        with pytest.raises(InputError, match=message):
            prune(tmp_path, wrong)
    assert prune(tmp_path, one[:6]).pairs == 4
    assert [e.identifier for e in entries(tmp_path)] == [two]
    assert scored(tmp_path, "q", TEXTS[:4], "two") == 0
    assert scored(tmp_path, "q", TEXTS[:4], "one") == 4


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=9), max_size=9))
def test_a_score_table_agrees_with_a_dict(batches: list[list[tuple[int, int]]]) -> None:
    """The table returns the same as a dict, even if the first halves of keys are equal."""
    table, expected = ScoreTable(), dict[tuple[int, int], float]()
    for batch in batches:
        new = sorted({key for key in batch if key not in expected})
        values = [float(len(expected) + i) for i in range(len(new))]
        expected |= dict(zip(new, values, strict=True))
        if new:
            table.add(np.array(new, np.uint64), np.array(values, np.float32))
    keys = [(a, b) for a in range(5) for b in range(52)]
    scores, known = table.find(np.array(keys, np.uint64))
    assert {key: s for key, s, k in zip(keys, scores.tolist(), known, strict=True) if k} == expected
    assert len(table) == len(expected)


def test_the_tokeniser_settings_are_part_of_the_fingerprint(bert: Callable[..., Path]) -> None:
    """Lower-casing changes scores, so it changes the fingerprint."""
    one, other = bert(labels=1), bert(labels=1)
    (other / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert load_scorer(one).fingerprint != load_scorer(other).fingerprint


RUN = """
import time
from birchbark.cli import main
from birchbark import deadline
from birchbark.score.session import OnnxSession
from birchbark.score_cache.store import ScoreStore

run, add = OnnxSession.run, ScoreStore.add
deadline.TOKENS_AT_ONCE = 12

def slow(*inputs):
    print("working", flush=True)
    time.sleep(0.01)  # so that kills come in between
    return run(*inputs)

def report(store, *new):
    add(store, *new)
    print(len(store), flush=True)

OnnxSession.run, ScoreStore.add = slow, report
main()
"""


@pytest.mark.slow
def test_kills_change_no_byte_of_the_run(index: Index, bert: Callable[..., Path]) -> None:
    """After kill -9 at random moments of `rerank --scores`, stored scores and run are complete."""
    model = bert(labels=1, positions=64)
    folder, store = model.parent, model.parent / "store"
    write_run(rank_queries(index, QUERIES), folder / "first.run")
    (folder / "q.tsv").write_text("".join(f"{q.query_id}\t{q.text}\n" for q in QUERIES))
    command = [
        sys.executable, "-c", RUN, "rerank", str(index.directory), "--run", "first.run",
        "--queries", "q.tsv", "--model", str(model), "--set", "segments=windows:3/2",
        "--threads", "1",
        *READ_EVERYTHING,
    ]  # fmt: skip
    subprocess.run([*command, "--output", "plain.run"], cwd=folder, check=True)
    expected = (folder / "plain.run").read_bytes()
    command += ["--scores", "store", "--output", "resumed.run"]
    random_source, kills, resumed, finished, pairs = random.Random(3), 0, 0, 0, 0
    while kills < 20:
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        begun = child.stdout.readline()  # empty where nothing was left to score
        time.sleep(random_source.uniform(0, 0.2) if begun else 0)
        if begun:
            child.kill()
        reported = [int(line) for line in child.communicate()[0].split() if line.isdecimal()]
        now = entries(store)[0].pairs
        assert now >= max([pairs, *reported])
        resumed += pairs > 0
        pairs = now
        kills += child.returncode != 0
        if (folder / "resumed.run").exists():  # it finished, perhaps killed on exit: start over
            assert (folder / "resumed.run").read_bytes() == expected
            (folder / "resumed.run").unlink()
            prune(store, model.name + " cross-encoder")
            pairs, finished = 0, finished + 1
        else:
            assert child.returncode != 0
    assert min(resumed, finished) > 1
    subprocess.run(command, cwd=folder, check=True)
    assert (folder / "resumed.run").read_bytes() == expected
