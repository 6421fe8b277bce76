"""What does each family of BERT call its tensors, its sizes and the layers of its head?

A family differs from BERT by names and by a few parts that it has or lacks; the table `FAMILIES`
says how, and nothing else in the house knows a family by name.
Sources: Devlin 2019 (BERT), Liu 2019 (RoBERTa), Conneau 2020 (XLM-R), Sanh 2019 (DistilBERT),
Clark 2020 (ELECTRA), Lan 2020 (ALBERT); names as transformers stores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Names:
    """Modules of the encoder, BERT's by default, each with a .weight and, tables aside, a .bias.

    {i} stands for the layer's number, {group} for that of the group whose weights it shares.
    types: empty where tokens have no types. widen: the linear layer from the embeddings to the
    hidden size, empty where a family has none.
    """

    words: str = "embeddings.word_embeddings"
    positions: str = "embeddings.position_embeddings"
    types: str = "embeddings.token_type_embeddings"
    embedded: str = "embeddings.LayerNorm"
    widen: str = ""
    query: str = "encoder.layer.{i}.attention.self.query"
    key: str = "encoder.layer.{i}.attention.self.key"
    value: str = "encoder.layer.{i}.attention.self.value"
    attended: str = "encoder.layer.{i}.attention.output.dense"
    attended_norm: str = "encoder.layer.{i}.attention.output.LayerNorm"
    inner: str = "encoder.layer.{i}.intermediate.dense"
    outer: str = "encoder.layer.{i}.output.dense"
    outer_norm: str = "encoder.layer.{i}.output.LayerNorm"


@dataclass(frozen=True, slots=True)
class MaskedHead:
    """What says which token is hidden: a linear layer, activation, norm, and a bias of each token.

    The scores are products with the embeddings themselves.
    """

    linear: str = "cls.predictions.transform.dense"
    norm: str = "cls.predictions.transform.LayerNorm"
    bias: str = "cls.predictions.bias"


@dataclass(frozen=True, slots=True)
class Family:
    """One family.

    prefix: of the encoder's tensors where a head stands on it. keys: what config.json calls a size,
    where it is not BERT's word. fixed: sizes that config.json does not say. activation: the
    feed-forward layers', if config.json does not say. offset: positions start behind the padding
    token's number. transform: linear layer of the head and its activation, between [CLS] and
    `logits`. drops_first: a training drops values of [CLS] out before it too, not behind it alone.
    next_sentence: the layer of BERT's next-sentence head, empty if there is none. masked: the head
    of a masked language model. classes: what the names of transformers' classes begin with.
    """

    prefix: str
    classes: str
    names: Names = Names()
    keys: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    activation: str = "gelu"
    offset: bool = False
    transform: tuple[str, str] = ("pooler.dense", "tanh")
    drops_first: bool = False
    logits: str = "classifier"
    next_sentence: str = ""
    masked: MaskedHead = MaskedHead()


_BERT = Family("bert.", "Bert", next_sentence="cls.seq_relationship")
_ROBERTA = Family(
    "roberta.",
    "Roberta",
    offset=True,
    transform=("classifier.dense", "tanh"),
    drops_first=True,
    logits="classifier.out_proj",
    masked=MaskedHead("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
)
_DISTILBERT = Family(
    "distilbert.",
    "DistilBert",
    names=Names(
        types="",
        query="transformer.layer.{i}.attention.q_lin",
        key="transformer.layer.{i}.attention.k_lin",
        value="transformer.layer.{i}.attention.v_lin",
        attended="transformer.layer.{i}.attention.out_lin",
        attended_norm="transformer.layer.{i}.sa_layer_norm",
        inner="transformer.layer.{i}.ffn.lin1",
        outer="transformer.layer.{i}.ffn.lin2",
        outer_norm="transformer.layer.{i}.output_layer_norm",
    ),
    keys={
        "num_hidden_layers": "n_layers",
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
    },
    fixed={"type_vocab_size": 0, "layer_norm_eps": 1e-12},
    transform=("pre_classifier", "relu"),
    masked=MaskedHead("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
)
_ELECTRA = Family(
    "electra.",
    "Electra",
    names=replace(Names(), widen="embeddings_project"),
    transform=("classifier.dense", "gelu"),
    drops_first=True,
    logits="classifier.out_proj",
    masked=MaskedHead(
        "generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"
    ),
)
_SHARED = "encoder.albert_layer_groups.{group}.albert_layers.0"
_ALBERT = Family(
    "albert.",
    "Albert",
    names=Names(
        widen="encoder.embedding_hidden_mapping_in",
        query=f"{_SHARED}.attention.query",
        key=f"{_SHARED}.attention.key",
        value=f"{_SHARED}.attention.value",
        attended=f"{_SHARED}.attention.dense",
        attended_norm=f"{_SHARED}.attention.LayerNorm",
        inner=f"{_SHARED}.ffn",
        outer=f"{_SHARED}.ffn_output",
        outer_norm=f"{_SHARED}.full_layer_layer_norm",
    ),
    activation="gelu_new",
    transform=("pooler", "tanh"),
    masked=MaskedHead("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
)

FAMILIES: Mapping[str, Family] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": replace(_ROBERTA, classes="XLMRoberta"),
    "camembert": replace(_ROBERTA, classes="Camembert"),
    "distilbert": _DISTILBERT,
    "electra": _ELECTRA,
    "albert": _ALBERT,
}
