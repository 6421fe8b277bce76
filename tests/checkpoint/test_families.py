"""Are the differences between families those of transformers?"""

from __future__ import annotations

import pytest

from birchbark.checkpoint.families import ABSOLUTE, FAMILIES, RELATIVE, ROTARY, STATIC_FAMILY

NAMES = [
    ("bert", "bert.", "Bert", ABSOLUTE, "classifier"),
    ("roberta", "roberta.", "Roberta", ABSOLUTE, "classifier.out_proj"),
    ("xlm-roberta", "roberta.", "XLMRoberta", ABSOLUTE, "classifier.out_proj"),
    ("camembert", "roberta.", "Camembert", ABSOLUTE, "classifier.out_proj"),
    ("distilbert", "distilbert.", "DistilBert", ABSOLUTE, "classifier"),
    ("electra", "electra.", "Electra", ABSOLUTE, "classifier.out_proj"),
    ("albert", "albert.", "Albert", ABSOLUTE, "classifier"),
    ("deberta-v2", "deberta.", "DebertaV2", RELATIVE, "classifier"),
    ("modernbert", "model.", "ModernBert", ROTARY, "classifier"),
]


@pytest.mark.parametrize(
    ("name", "prefix", "classes", "positions", "logits"),
    NAMES,
)
def test_names_of_families(
    name: str, prefix: str, classes: str, positions: str, logits: str
) -> None:
    """XLM-R and CamemBERT are stored as RoBERTa is, and loaded by classes of their own."""
    family = FAMILIES[name]
    assert (family.prefix, family.classes) == (prefix, classes)
    assert (family.positions, family.logits) == (positions, logits)


def test_no_family_is_missing_above() -> None:
    """A static embedding is none of transformers' families."""
    assert list(FAMILIES) == [name for name, *_ in NAMES]
    assert STATIC_FAMILY not in FAMILIES.values()


def test_what_only_some_families_have() -> None:
    """RoBERTa's positions begin after the padding token; DistilBERT's settings have other names."""
    offset = [name for name, family in FAMILIES.items() if family.offset]
    assert offset == ["roberta", "xlm-roberta", "camembert"]
    assert [name for name, family in FAMILIES.items() if family.next_sentence] == ["bert"]
    assert [name for name, family in FAMILIES.items() if family.gated] == ["modernbert"]
    assert FAMILIES["distilbert"].keys["hidden_size"] == "dim"
    assert FAMILIES["distilbert"].fixed["type_vocab_size"] == 0
    assert FAMILIES["albert"].names.inner.format(group=0).endswith("groups.0.albert_layers.0.ffn")
