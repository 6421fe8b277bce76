"""Is the displayed attention the attention that the model uses?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from birchbark.errors import InputError
from birchbark.score.attention import attention
from birchbark.score.load_scorer import load_scorer
from conftest import write_bert

QUERY, TEXT = "birch river", "A canoe of birch bark."


def test_attention_of_every_layer_and_head(bert: Callable[..., Path]) -> None:
    """Attention sums to 1, the last layer has only [CLS], and the score is the scorer's."""
    model = str(bert(labels=1, layers=3))
    result = attention(model, QUERY, TEXT)
    assert result.tokens == (
        *("[CLS]", "birch", "river", "[SEP]", "a", "canoe", "[UNK]", "birch", "bark"),
        *(".", "[SEP]"),
    )
    assert result.sides == ("special", *["query"] * 2, "special", *["text"] * 6, "special")
    assert [layer.shape for layer in result.layers] == [(4, 11, 11), (4, 11, 11), (4, 1, 11)]
    for layer in result.layers:
        np.testing.assert_allclose(layer.sum(axis=2), 1, atol=1e-6)
        assert layer.std() > 0
    scorer = load_scorer(model)
    assert result.score == pytest.approx(float(scorer.score(QUERY, scorer.encode([TEXT]))[0]))


def test_attention_agrees_with_transformers(tmp_path: Path) -> None:
    """Attention weights agree with those of transformers to within 1e-5."""
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    path = write_bert(tmp_path / "bert", labels=1)
    result = attention(str(path), QUERY, TEXT)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        path, attn_implementation="eager", num_labels=1
    ).eval()
    tokenizer = transformers.BertTokenizerFast(str(path / "vocab.txt"))
    with torch.no_grad():
        theirs = model(**tokenizer(QUERY, TEXT, return_tensors="pt"), output_attentions=True)
    for ours, layer in zip(result.layers, theirs.attentions, strict=True):
        np.testing.assert_allclose(ours, layer[0].numpy()[:, : ours.shape[1]], atol=1e-5)


def test_inputs_without_attention_are_rejected(bert: Callable[..., Path]) -> None:
    """Embedding models and inputs that are too long are rejected."""
    with pytest.raises(InputError, match=r"query and text separately.*a cross-encoder"):
        attention(str(bert()), QUERY, TEXT)
    with pytest.raises(InputError, match=r"do not fit.*at most 29 tokens together.*2 and 40"):
        attention(str(bert(labels=1)), QUERY, "bark " * 40)


def test_the_page(bert: Callable[..., Path]) -> None:
    """The page is one file without links, has all heads, and escapes texts."""
    from birchbark.show.attention_page import attention_page

    query, text = "birch </script><b>", "bark <img src=x onerror=alert(1)> canoe"
    result = attention(str(bert(labels=1)), query, text)
    page = attention_page(result, "tiny", query, text)
    listed = {
        word.rsplit(" ", 1)[0]
        for cell in re.findall(r"<td[^>]*>(.*?)</td>", page)
        for word in cell.replace("\u00a0%", "").split(", ")
    }
    sides = zip(result.tokens, result.sides, strict=True)
    assert listed <= {token for token, side in sides if side == "text"}
    assert "birch" not in listed
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert not re.search(r"""(?:src|href)=["']?https?:""", page)
    assert page.count('"heads": 4') == 2
