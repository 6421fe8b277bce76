"""How are tiny random models of sentence-transformers made, with tokenisers of several kinds?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conftest import WORDS

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = [
    "a canoe, birch bark.",
    "Bees dance",
    " iron bridge! ",
    "",
    "(stone) 12",
    "the river the river",
    "日本 é",
]
QUERIES = ["birch river", "Why do bees dance?", " stone"]
CORPUS = [*TEXTS, *QUERIES, "query: search_document: passage text [Q] [D]", " ".join(WORDS)]


def write_encoder(directory: Path, kind: str, markers: Sequence[str] = ()) -> Path:
    """Write an encoder with random weights: `wordpiece` is BERT, `bytes` ModernBERT, `unigram` XLM.

    The names are those of their tokenisers' kinds. markers: more tokens, which texts do not become.
    """
    import torch
    import transformers

    tokenizer = _tokenizer(kind)
    if markers:
        from tokenizers import AddedToken

        tokenizer.add_tokens([AddedToken(marker, normalized=True) for marker in markers])
    sizes: dict[str, Any] = {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 36,
        "max_position_embeddings": 80,
        "pad_token_id": 0,
    }
    name = {"wordpiece": "Bert", "bytes": "ModernBert", "unigram": "XLMRoberta"}[kind]
    if name == "ModernBert":
        sizes |= {"local_attention": 64, "bos_token_id": 2, "cls_token_id": 2}
        sizes |= {"eos_token_id": 3, "sep_token_id": 3}
    if name == "XLMRoberta":
        sizes |= {"type_vocab_size": 1}
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**sizes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(directory)
    tokenizer.save(str(directory / "tokenizer.json"))
    named = {
        f"{n}_token": t for n, t in zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL, strict=True)
    }
    stated: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 80,
        **named,
    }
    if kind == "wordpiece":
        stated |= {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    (directory / "tokenizer_config.json").write_text(json.dumps(stated))
    return directory


def _tokenizer(kind: str) -> Any:
    """Return a tokeniser trained on CORPUS."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    trainer: Any
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=SPECIAL)
    elif kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet
        )
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        )
        trainer = trainers.UnigramTrainer(
            vocab_size=120, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False
        )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1" if kind == "wordpiece" else "[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer
