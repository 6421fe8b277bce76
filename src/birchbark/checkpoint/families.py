"""How do RoBERTa, ALBERT, ModernBERT and others differ from BERT in their checkpoints?

They name tensors and settings differently, and add or lack a few modules. The table `FAMILIES`
defines the differences; no other Python module refers to a family by name. Tensors are named as in
transformers. Devlin 2019 (BERT), Liu 2019 (RoBERTa), Conneau 2020 (XLM-R), Martin 2020 (CamemBERT),
Sanh 2019 (DistilBERT), Clark 2020 (ELECTRA), Lan 2020 (ALBERT), He 2021 (DeBERTa v2 and v3), Warner
2024 (ModernBERT).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

ABSOLUTE = "absolute"  # embeddings of positions are added to those of tokens
ROTARY = "rotary"  # queries and keys are rotated by their position
RELATIVE = "relative"  # attention scores depend on embeddings of the distance


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the encoder's modules; the defaults are BERT's.

    Each module has a tensor NAME.weight and, unless it is an embedding, NAME.bias. {i} stands for
    the number of the layer, {group} for the number of its weight set.

    Attributes:
        words: Token embeddings.
        positions: Position embeddings; empty if positions only affect attention.
        types: Token type embeddings; empty if the family has no token types.
        embedded: Layer normalisation of the summed embeddings.
        widen: Linear layer from the embedding width to the hidden size; empty if there is none.
        fused: Linear layer for queries, keys and values together; empty if each has its own.
        query: Linear layer for the queries of attention.
        key: Linear layer for the keys of attention.
        value: Linear layer for the values of attention.
        attended: Linear layer after attention.
        attended_norm: Layer normalisation after attention, or before it (EncoderConfig.prenorm).
        inner: First feed-forward layer.
        outer: Second feed-forward layer.
        outer_norm: Layer normalisation after the feed-forward layers, or before them.
        final_norm: Layer normalisation after the last layer; empty if there is none.
        relative: Embeddings of relative positions; empty if the family has none.
        relative_norm: Layer normalisation of these embeddings.
    """

    words: str = "embeddings.word_embeddings"
    positions: str = "embeddings.position_embeddings"
    types: str = "embeddings.token_type_embeddings"
    embedded: str = "embeddings.LayerNorm"
    widen: str = ""
    fused: str = ""
    query: str = "encoder.layer.{i}.attention.self.query"
    key: str = "encoder.layer.{i}.attention.self.key"
    value: str = "encoder.layer.{i}.attention.self.value"
    attended: str = "encoder.layer.{i}.attention.output.dense"
    attended_norm: str = "encoder.layer.{i}.attention.output.LayerNorm"
    inner: str = "encoder.layer.{i}.intermediate.dense"
    outer: str = "encoder.layer.{i}.output.dense"
    outer_norm: str = "encoder.layer.{i}.output.LayerNorm"
    final_norm: str = ""
    relative: str = ""
    relative_norm: str = ""


@dataclass(frozen=True, slots=True)
class MaskedHead:
    """The names of the modules in a masked language model's head.

    The head applies a linear layer, the encoder's activation and layer normalisation. A token's
    logit is the dot product of the result with the token's embedding, plus the token's bias.

    Attributes:
        linear: Linear layer.
        norm: Layer normalisation.
        bias: Tensor of the biases, one per token.
    """

    linear: str = "cls.predictions.transform.dense"
    norm: str = "cls.predictions.transform.LayerNorm"
    bias: str = "cls.predictions.bias"


@dataclass(frozen=True, slots=True)
class Family:
    """How the checkpoints of one family differ from BERT's.

    Attributes:
        prefix: Prefix of the encoder's tensors in a model with a head.
        heads: What the names of a classifier's tensors begin with that are stored without `prefix`.
        classes: Prefix of the names of transformers' classes.
        names: Names of the encoder's modules.
        keys: BERT's key in config.json → this family's key, if it differs.
        fixed: BERT's key → value, for settings that config.json does not state.
        activation: Activation of the feed-forward layers, if config.json does not state it.
        offset: Whether positions start after the padding token's id.
        positions: How the model knows positions: ABSOLUTE, ROTARY or RELATIVE; empty if it knows
            none.
        prenorm: Whether layers normalise their inputs instead of their outputs.
        gated: Whether the feed-forward layers are gated (GEGLU): half of the first layer's outputs,
            after the activation, are multiplied by the other half.
        optional_types: Whether models without token types exist, which state 0 types.
        optional_biases: Whether layers have a bias only if the checkpoint stores one.
        transform: The classifier's first linear layer and its activation.
        transform_norm: Layer normalisation after `transform`; empty if there is none.
        reads: What `transform` is applied to: `cls` for [CLS], or `mean` for the mean of all token
            vectors.
        activation_key: Key in config.json of the activation in `transform`; empty if it is fixed.
        reads_key: Key in config.json of `reads`; empty if it is fixed.
        drops_first: Whether training applies dropout before `transform` as well as after it.
        logits: The classifier's output layer, applied after `transform`.
        next_sentence: Output layer of the next-sentence head; empty if there is none.
        masked: Names in the head of a masked language model.
        static: Whether a model is nothing but a table of token vectors, without special tokens.
    """

    prefix: str
    classes: str
    heads: tuple[str, ...] = ("classifier.", "pre_classifier.")
    names: Names = Names()
    keys: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    activation: str = "gelu"
    offset: bool = False
    positions: str = ABSOLUTE
    prenorm: bool = False
    gated: bool = False
    optional_types: bool = False
    optional_biases: bool = False
    transform: tuple[str, str] = ("pooler.dense", "tanh")
    transform_norm: str = ""
    reads: str = "cls"
    activation_key: str = ""
    reads_key: str = ""
    drops_first: bool = False
    logits: str = "classifier"
    next_sentence: str = ""
    masked: MaskedHead = MaskedHead()
    static: bool = False


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
_DEBERTA = Family(
    "deberta.",
    "DebertaV2",
    heads=("classifier.", "pooler."),
    names=replace(
        Names(),
        positions="",
        query="encoder.layer.{i}.attention.self.query_proj",
        key="encoder.layer.{i}.attention.self.key_proj",
        value="encoder.layer.{i}.attention.self.value_proj",
        relative="encoder.rel_embeddings",
        relative_norm="encoder.LayerNorm",
    ),
    positions=RELATIVE,
    optional_types=True,
    transform=("pooler.dense", "gelu"),
    activation_key="pooler_hidden_act",
)
_MODERNBERT = Family(
    "model.",
    "ModernBert",
    names=Names(
        words="embeddings.tok_embeddings",
        positions="",
        types="",
        embedded="embeddings.norm",
        fused="layers.{i}.attn.Wqkv",
        query="",
        key="",
        value="",
        attended="layers.{i}.attn.Wo",
        attended_norm="layers.{i}.attn_norm",
        inner="layers.{i}.mlp.Wi",
        outer="layers.{i}.mlp.Wo",
        outer_norm="layers.{i}.mlp_norm",
        final_norm="final_norm",
    ),
    keys={"hidden_act": "hidden_activation", "layer_norm_eps": "norm_eps"},
    fixed={"type_vocab_size": 0},
    positions=ROTARY,
    prenorm=True,
    gated=True,
    optional_biases=True,
    transform=("head.dense", "gelu"),
    transform_norm="head.norm",
    activation_key="classifier_activation",
    reads_key="classifier_pooling",
    masked=MaskedHead("head.dense", "head.norm", "decoder.bias"),
)
STATIC_FAMILY = Family("", "", positions="", static=True)  # not of transformers

FAMILIES: Mapping[str, Family] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": replace(_ROBERTA, classes="XLMRoberta"),
    "camembert": replace(_ROBERTA, classes="Camembert"),
    "distilbert": _DISTILBERT,
    "electra": _ELECTRA,
    "albert": _ALBERT,
    "deberta-v2": _DEBERTA,
    "modernbert": _MODERNBERT,
}
