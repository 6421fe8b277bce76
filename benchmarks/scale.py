"""What does it cost to divide work: an index in shards, and re-ranking on a ray cluster?

    python -m benchmarks.scale --output benchmarks/RESULTS-SCALE.md

Four parts, on all cores of this machine:
- a large collection (benchmarks/text.py) is indexed in shards and searched;
- its first million documents are searched in one piece and in as many shards;
- the same million in a shard per core is searched here, and by a process for each shard on ray;
- a run is re-ranked by one process, and by `birchbark cluster`, one or several shards at a time.
A part whose requirements are missing is left out, which the report says.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import click

from benchmarks.prepare import prepare_text
from benchmarks.queries import make_query
from birchbark.cluster.on_ray import Resources
from birchbark.cluster.serving import serving_processes
from birchbark.collection.data_files import find_data_root
from birchbark.index.index import Index
from birchbark.pipeline.searcher import Searcher
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.score.vector_instructions import processor

SEED, QUERIES, DEPTH, ROUNDS = 1, 200, 1000, 3
PIECE = 1_000_000  # documents of the index that is compared with one in shards
SHARDS = 10
CLUSTER_SHARDS = 8
BIRCHBARK = (sys.executable, "-m", "birchbark")


@click.command()
@click.option("--documents", default=10_000_000, show_default=True)
@click.option("--work", type=click.Path(path_type=Path), default="scale-work", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(documents: int, work: Path, output: Path | None) -> None:
    """Measure, and write the report."""
    if documents <= PIECE:
        raise click.ClickException(f"more than {PIECE:,} documents are needed")
    work.mkdir(parents=True, exist_ok=True)
    lines = [
        "<!-- Made by benchmarks/scale.py; do not edit. -->",
        "# Work in shards",
        "",
        f"{len(os.sched_getaffinity(0))} cores, {processor()}; Python {platform.python_version()}.",
        "",
        *_indexes(documents, work),
        "",
        *_serving(work),
        "",
        *_cluster(work),
    ]
    text = "\n".join(lines) + "\n"
    if output:
        output.write_text(text, "utf-8")
    else:
        click.echo(text, nl=False)


def _indexes(documents: int, work: Path) -> Iterator[str]:
    text, _ = prepare_text(work, documents, SEED, find_data_root())
    piece = work / "piece.jsonl"
    _copy_lines(text, piece, PIECE)
    yield (
        f"Made text (benchmarks/text.py), {text.stat().st_size / documents:,.0f} bytes of JSONL a "
        f"document; {QUERIES} queries of five words, the best {DEPTH:,} documents, one thread; "
        f"median of {ROUNDS} rounds. Memory is that of the largest process while building, and the "
        "resident memory of the searching process after all queries."
    )
    yield ""
    yield (
        "| documents | shards | build s | build memory MB | disk MB | p50 ms | p95 ms "
        "| search memory MB |"
    )
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for source, count, shards in (
        (piece, PIECE, 1),
        (piece, PIECE, SHARDS),
        (text, documents, SHARDS),
    ):
        index = work / f"{count}-{shards}.index"
        options = ["--shards", str(shards)] if shards > 1 else []
        shutil.rmtree(index, ignore_errors=True)
        seconds, peak = _timed([*BIRCHBARK, "index", str(source), "--to", str(index), *options])
        size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file()) / 1e6
        p50, p95, resident = _search(index, source, count)
        yield (
            f"| {count:,} | {shards} | {seconds:.0f} | {peak:,.0f} | {size:,.0f} | {p50:.2f} | "
            f"{p95:.2f} | {resident:,.0f} |"
        )
    yield ""
    yield _ten_times(documents, seconds, size, p50)


def _ten_times(documents: int, seconds: float, size: float, p50: float) -> str:
    """Return what ten times as many documents would take, computed from one measurement."""
    return (
        f"Extrapolated to {10 * documents:,} documents: if time and disk grow with the number of "
        f"documents, they are indexed in {10 * seconds / 3600:.1f} hours on this machine, or "
        f"{seconds / 60:.0f} minutes by ten like it; the index takes {10 * size / 1000:.0f} GB; "
        f"one process searches it in {10 * p50:.0f} ms (p50), and ten machines with a tenth each, "
        f"by `birchbark cluster serve`, in {p50:.0f} ms plus the overhead of separate processes "
        "(below)."
    )


def _copy_lines(source: Path, target: Path, count: int) -> None:
    with source.open("rb") as lines, target.open("wb") as out:
        out.writelines(islice(lines, count))


def _search(index: Path, text: Path, documents: int) -> tuple[float, float, float]:
    """Return p50 and p95 in milliseconds, and resident memory in MB, measured in a new process."""
    arguments = [str(index), str(text), str(documents)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale_search", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    p50, p95, resident = map(float, done.stdout.split())
    return p50, p95, resident


def time_queries(index: Index, text: Path, documents: int) -> tuple[float, float]:
    """Return the median of p50 and of p95 over rounds, in milliseconds."""
    stage, queries = FirstStage(), make_queries(index, text, documents)
    return time_calls(lambda query: rank_query(index, query, stage, DEPTH), queries)


def make_queries(index: Index, text: Path, documents: int) -> list[str]:
    """Return queries of five words of some of the documents."""
    rng = random.Random(SEED)
    wanted = set(rng.sample(range(documents), QUERIES))
    with text.open(encoding="utf-8") as lines:
        drawn = [line for number, line in enumerate(lines) if number in wanted]
    made = [make_query(index, json.loads(line)["text"], rng) for line in drawn]
    return [" ".join(query["five"]) for query in made if query]


def time_calls(search: Callable[[str], object], queries: Sequence[str]) -> tuple[float, float]:
    """Return the median of p50 and of p95 over rounds, in milliseconds."""
    rounds = []
    for _ in range(ROUNDS + 1):  # the first one warms up
        times = []
        for query in queries:
            start = time.perf_counter()
            search(query)
            times.append(1000 * (time.perf_counter() - start))
        rounds.append(statistics.quantiles(times, n=20))
    measured = rounds[1:]
    return statistics.median(x[9] for x in measured), statistics.median(x[18] for x in measured)


def _serving(work: Path) -> Iterator[str]:
    """Compare the searches of a service's process with those of a process for each shard."""
    if importlib.util.find_spec("ray") is None:
        yield "Serving from a cluster: not run, since ray is not here."
        return
    cores = len(os.sched_getaffinity(0))
    source, folder = work / "piece.jsonl", work / "served.index"
    shutil.rmtree(folder, ignore_errors=True)
    _timed([*BIRCHBARK, "index", str(source), "--to", str(folder), "--shards", str(cores)])
    yield (
        f"First stage of `birchbark serve`, {PIECE:,} documents in {cores} shards, {QUERIES} "
        f"queries of five words, best 10, one after the other; median of {ROUNDS} "
        "rounds."
    )
    yield ""
    yield "| ranked by | p50 ms | p95 ms | hits |"
    yield "| --- | ---: | ---: | --- |"
    queries = make_queries(Index(folder), source, PIECE)
    here = Searcher(folder, ())
    p50, p95 = time_calls(lambda query: here.search(query), queries)
    yield f"| this process | {p50:.1f} | {p95:.1f} | |"
    with serving_processes(folder, Resources(1)) as processes:
        there = Searcher(folder, (), remote=processes.rankers)
        p50, p95 = time_calls(lambda query: there.search(query), queries)
        same = all(there.search(query) == here.search(query) for query in queries)
    yield f"| a process for each shard | {p50:.1f} | {p95:.1f} | {'same' if same else 'other'} |"


def _cluster(work: Path) -> Iterator[str]:
    root = find_data_root()
    if root is None or importlib.util.find_spec("ray") is None:
        yield "Re-ranking on a cluster: not run, since ray or the data are not here."
        return
    data = root / "trec-dl19-passage"
    index = work / "dl19.index"
    _timed([*BIRCHBARK, "index", str(data / "corpus.jsonl"), "--to", str(index), "--replace"])
    run = data / "runs" / "BM25.5bcc39.top100.run"
    rerank = ["rerank", str(index), "--run", str(run), "--queries", str(data / "queries.tsv")]
    rerank += ["--set", "segments=whole", "--embedding", "none", "--set", "read_segments=all"]
    cores = len(os.sched_getaffinity(0))
    ways: dict[str, Sequence[str]] = {
        f"one process, {cores} threads": [],
        f"cluster, {CLUSTER_SHARDS} shards, one at a time with {cores} threads": [str(cores)],
        f"cluster, {CLUSTER_SHARDS} shards, {cores} at a time": ["1"],
    }
    yield (
        "Re-ranking 43 queries of TREC DL 2019 × 100 passages by the default cross-encoder, fp32, "
        "on this machine; the time of the whole command, with the start of ray where it is used."
    )
    yield ""
    yield "| | seconds | overhead | run |"
    yield "| --- | ---: | ---: | --- |"
    whole: tuple[float, bytes] | None = None
    for way, cpus in ways.items():
        output = work / "bert.run"
        output.unlink(missing_ok=True)
        before = ["cluster", "--shards", str(CLUSTER_SHARDS), "--cpus", *cpus] if cpus else []
        seconds, _ = _timed([*BIRCHBARK, *before, *rerank, "--output", str(output)])
        whole = whole or (seconds, output.read_bytes())
        same = "same bytes" if output.read_bytes() == whole[1] else "**other bytes**"
        yield f"| {way} | {seconds:.0f} | {100 * (seconds / whole[0] - 1):+.0f} % | {same} |"


def _timed(command: Sequence[str]) -> tuple[float, float]:
    """Return the seconds of a command, and the memory in MB of the largest of its processes."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=sys.stderr)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise click.ClickException(f"failed: {' '.join(command)}")
    return time.perf_counter() - start, used.ru_maxrss / 1000


if __name__ == "__main__":
    main()
