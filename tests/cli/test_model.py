"""Does `birchbark model` check and quantise, and does --precision reach the scorer?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import load_file, save_file

from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.evaluate.calibrate import fit_scale
from birchbark.score import channel_ranges
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.describe import describe
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from conftest import DOCUMENTS, READ_EVERYTHING, WORDS, write_bert


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a tiny model, pairs, a collection and queries."""
    monkeypatch.chdir(tmp_path)
    write_bert(tmp_path / "model", labels=1, positions=64)
    texts = {"a canoe of birch bark": "birch", "the bees dance": "birch", "bee " * 100: "bee"}
    lines = ["query\ttext\tlabel", *(f"{query}\t{text}\t3" for text, query in texts.items())]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines))
    documents = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(documents))
    (tmp_path / "q.tsv").write_text("1\tbirch river\n2\tiron engine\n")
    return tmp_path


def birchbark(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, catch_exceptions=False)


def test_check_prints_a_row_per_precision(here: Path) -> None:
    """The user's pairs are scored; a text that is too long is truncated."""
    shown = birchbark("model", "check", "model", "--pairs", "pairs.tsv", "--threads", "1").output
    for word in ("fp32", "weights in 16 bits", "weights in 8 bits", "int8 arithmetic", "1.0000"):
        assert word in shown
    output = birchbark("model", "check", "model", "--pairs", "pairs.tsv", "--json").stdout
    fp32, *others = json.loads(output)
    assert (fp32["precision"], fp32["tau"], fp32["largest_difference"]) == ("fp32", 1.0, 0.0)
    assert fp32["pairs_per_second"]["pairs"] > 0 < fp32["megabytes"]
    assert len(others) == 3
    (here / "bad.tsv").write_text("birch\ta canoe\nbirch\ta bark\n")
    with pytest.raises(InputError, match=r"bad\.tsv.*no column"):
        birchbark("model", "check", "model", "--pairs", "bad.tsv")
    (here / "empty.tsv").write_text("")
    with pytest.raises(InputError, match=r"empty\.tsv: no pairs"):
        birchbark("model", "check", "model", "--pairs", "empty.tsv")


@pytest.mark.slow
def test_check_without_pairs(here: Path) -> None:
    """Without --pairs, short and long texts of Python's documentation are scored."""
    shown = birchbark("model", "check", "model").output
    assert "short, pairs/s" in shown
    assert "long, pairs/s" in shown


def test_quantized_model_ranks(here: Path) -> None:
    """The two precisions store separate scores, and the best by int8 are rescored in fp32."""
    output = birchbark("model", "quantize", "model", "--bits", "8", "--to", "small").output
    assert "small: " in output
    assert " MB before" in output
    birchbark("index", "docs.jsonl", "--to", "i")
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    command = ["rerank", "i", "--run", "a.run", "--queries", "q.tsv", "--scores", "kept"]
    command += [*READ_EVERYTHING, "--set", "segments=sentences"]
    for model in ("model", "small"):
        for precision, known in (("fp32", 0), ("int8", 12)):
            more = ["--model", model, "--precision", precision, "--output", f"{model}.run"]
            assert f"12 pairs scored, {known} reused" in birchbark(*command, *more).output
    rows = birchbark("scores", "kept").output
    assert "small, int8 cross-encoder" in rows
    assert "model cross-encoder\n" in rows


def test_only_a_model_is_replaced(here: Path) -> None:
    """A folder of another program with a config.json is never replaced."""
    Path("app").mkdir()
    Path("app/config.json").touch()
    command = ["model", "quantize", "model", "--bits", "8", "--to", "app"]
    with pytest.raises(
        InputError,
        match=r"app: already exists \(choose another path, or replace it: --replace,",
    ):
        birchbark(*command)
    for text in ('{"port": 80}', "[]", "{", ""):
        Path("app/config.json").write_text(text)
        with pytest.raises(
            InputError, match="app: the folder is not empty and does not contain a model"
        ):
            birchbark(*command, "--replace")
    assert [path.name for path in Path("app").iterdir()] == ["config.json"]
    Path("app/config.json").unlink()
    birchbark(*command)
    birchbark(*command, "--replace")


def test_model_without_a_head(here: Path) -> None:
    """A model without a head can be quantised, and can provide an index's WordPieces."""
    shutil.copytree("model", "bare")
    tensors = load_file("bare/model.safetensors")
    save_file({n: v for n, v in tensors.items() if "class" not in n}, "bare/model.safetensors")
    assert "no head" in describe(Path("bare"), "bare").head
    assert (
        "small: " in birchbark("model", "quantize", "bare", "--bits", "8", "--to", "small").output
    )
    birchbark("index", "docs.jsonl", "--to", "i", "--analyzer", "wordpiece", "--vocabulary", "bare")
    with pytest.raises(InputError, match="--vocabulary has no effect without --analyzer"):
        birchbark("index", "docs.jsonl", "--to", "j", "--vocabulary", "bare")


def test_a_quantized_model_appears_complete(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the command ends before all files are written, there is no model."""
    command = ["model", "quantize", "model", "--bits", "8", "--to", "small"]
    with monkeypatch.context() as patched:
        patched.setattr(channel_ranges, "_computed", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            birchbark(*command)
    assert not (here / "small").exists()
    birchbark(*command)
    assert (here / "small" / channel_ranges.STORED).exists()


@pytest.mark.parametrize("name", ["check", "quantize"])
def test_help_shows_an_example(name: str) -> None:
    """The help of every command ends with an example."""
    assert f"Example: birchbark model {name}" in birchbark("model", name, "--help").output


@pytest.mark.parametrize("labels", [1, None])
def test_a_scale_is_fitted_and_stated(here: Path, labels: int | None) -> None:
    """It is that of the outputs and labels; the copy states it, and has scores on it."""
    shutil.rmtree(here / "model")
    write_bert(here / "model", labels=labels, positions=64)
    query, texts = "birch river", [f"{a} {b}" for a in WORDS for b in WORDS]
    scorer = load_scorer(here / "model")
    assert isinstance(scorer, (CrossEncoderScorer, EmbeddingScorer))
    outputs = scorer.outputs(query, scorer.encode(texts)).astype(np.float64)
    random = np.random.default_rng(0)
    relevant = outputs + outputs.std() * random.normal(size=len(texts)) > np.median(outputs)
    rows = [f"{query}\t{text}\t{int(label)}" for text, label in zip(texts, relevant, strict=True)]
    Path("labelled.tsv").write_text("\n".join(["query\ttext\tlabel", *rows]) + "\n")
    command = ("model", "calibrate", "model", "--pairs", "labelled.tsv")
    printed = dict(line.split("\t") for line in birchbark(*command).stdout.splitlines())
    assert birchbark(*command, "--to", "copy").stdout.splitlines() == [
        f"{name}\t{value}" for name, value in printed.items()
    ]
    stated = load_scorer(here / "copy").checkpoint.scale.as_config()
    assert {name: f"{value:.4g}" for name, value in stated.items()} == printed
    shift, temperature = fit_scale(outputs, relevant)
    scaled = (outputs - shift) / temperature
    line = np.clip(0.5 + scaled / 4, 0, 1)  # touches the curve in its middle
    expected = 1 / (1 + np.exp(-scaled)) if labels else line
    copy = load_scorer(here / "copy")
    np.testing.assert_allclose(copy.score(query, copy.encode(texts)), expected, atol=1e-5)
    with pytest.raises(InputError, match="--replace has no effect without --to"):
        birchbark(*command, "--replace")
    with pytest.raises(InputError, match="copy: already exists"):
        birchbark(*command, "--to", "copy")
    Path("one.tsv").write_text(f"query\ttext\tlabel\n{query}\tcanoe\t1\n")
    with pytest.raises(InputError, match="the scale cannot be fitted: expected relevant and other"):
        birchbark("model", "calibrate", "model", "--pairs", "one.tsv")
