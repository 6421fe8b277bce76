"""Is what is drawn as attention what the model computes with?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from birchbark.errors import InputError
from birchbark.score.attention import attention
from birchbark.score.model import load_scorer
from conftest import write_bert

QUERY, TEXT = "birch river", "A canoe of birch bark."


def test_shares_of_every_layer_and_head(bert: Callable[..., Path]) -> None:
    """They sum to 1; all tokens look, in the last layer [CLS] alone; the score is the scorer's."""
    model = str(bert(labels=1, layers=3))
    found = attention(model, QUERY, TEXT)
    assert found.tokens == (
        *("[CLS]", "birch", "river", "[SEP]", "a", "canoe", "[UNK]", "birch", "bark"),
        *(".", "[SEP]"),
    )
    assert found.sides == ("special", *["query"] * 2, "special", *["text"] * 6, "special")
    assert [layer.shape for layer in found.layers] == [(4, 11, 11), (4, 11, 11), (4, 1, 11)]
    for layer in found.layers:
        np.testing.assert_allclose(layer.sum(axis=2), 1, atol=1e-6)
        assert layer.std() > 0
    scorer = load_scorer(model)
    assert found.score == pytest.approx(float(scorer.score(QUERY, scorer.encode([TEXT]))[0]))


def test_attention_as_transformers_computes_it(tmp_path: Path) -> None:
    """To 1e-5."""
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    path = write_bert(tmp_path / "bert", labels=1)
    found = attention(str(path), QUERY, TEXT)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        path, attn_implementation="eager", num_labels=1
    ).eval()
    tokenizer = transformers.BertTokenizerFast(str(path / "vocab.txt"))
    with torch.no_grad():
        theirs = model(**tokenizer(QUERY, TEXT, return_tensors="pt"), output_attentions=True)
    for ours, layer in zip(found.layers, theirs.attentions, strict=True):
        np.testing.assert_allclose(ours, layer[0].numpy()[:, : ours.shape[1]], atol=1e-5)


def test_what_cannot_be_drawn(bert: Callable[..., Path]) -> None:
    """An embedding, and what does not fit into one input."""
    with pytest.raises(InputError, match=r"reads query and text apart.*a cross-encoder"):
        attention(str(bert()), QUERY, TEXT)
    with pytest.raises(InputError, match=r"do not fit.*29 tokens together.*2 and 40"):
        attention(str(bert(labels=1)), QUERY, "bark " * 40)


def test_the_page(bert: Callable[..., Path]) -> None:
    """One file without links; texts cannot break out of it; all heads are in it."""
    from birchbark.show.attention import attention_page

    query, text = "birch </script><b>", "bark <img src=x onerror=alert(1)> canoe"
    found = attention(str(bert(labels=1)), query, text)
    page = attention_page(found, "tiny", query, text)
    told = {
        word.rsplit(" ", 1)[0]
        for cell in re.findall(r"<td[^>]*>(.*?)</td>", page)
        for word in cell.replace("\u00a0%", "").split(", ")
    }
    read = {token for token, side in zip(found.tokens, found.sides, strict=True) if side == "text"}
    assert told <= read
    assert "birch" not in told
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert not re.search(r"""(?:src|href)=["']?https?:""", page)
    assert page.count('"heads": 4') == 2
