"""Which commands and options of early releases have another name now?"""

from __future__ import annotations

from collections.abc import Sequence

from birchbark.errors import InputError

REPLACED = {
    "distill": "birchbark train",
    "adapt": "birchbark train",
    "pretrain": "birchbark train",
    "model pool": "birchbark.checkpoint.pool.pool_model, a function in Python",
    "model fill-mask": "birchbark.score.masked_lm.MaskedLanguageModel.fill, a function in Python",
    "pairs judged": "birchbark pairs",
    "pairs title-abstract": "birchbark study title-pairs, in the package birchbark-studies",
    "pairs to-collection": "gone; `birchbark pairs` draws negatives from a run",
    "reformulate": "birchbark study reformulate, in the package birchbark-studies",
    "attention": "birchbark study attention, in the package birchbark-studies",
}
OF_STAGE = (
    *("pooling", "depth", "segments", "aggregate", "first-stage-weight", "first-stage-scale"),
    *("max-segments", "max-length", "query-tokens", "read-segments", "read-documents"),
    *("read-pairs", "embed-segments", "embed-documents", "embedding-weight", "duo", "duo-depth"),
    *("duo-aggregate", "duo-max-comparisons"),
)
OF_FIRST_STAGE = {
    **{f"--{key}": key for key in ("k1", "b", "idf-documents", "vector-set", "match")},
    "--first-stage": "model",
    "--field": "fields.NAME",
    "--rm3-documents": "rm3.documents",
    "--rm3-terms": "rm3.terms",
    "--rm3-weight": "rm3.original_weight",
    "--rm3-max-df": "rm3.max_df_share",
}
REPLACED_OPTIONS = {  # options of search, serve, mcp, retrieve and rerank → what replaces them
    **{f"--{name}": f"--set {name.replace('-', '_')}=VALUE" for name in OF_STAGE},
    **{
        option: f"--set first_stage.{key.replace('-', '_')}=VALUE"
        for option, key in OF_FIRST_STAGE.items()
    },
    "--rm3": "--set first_stage.rm3={}",
    "--field-bm25": '--set "first_stage.field_bm25.NAME={ k1 = 1.2, b = 0.3 }"',
    "--first-stage-only": "--model none",
    "--stages": "--ranker FILE, with tables [[stage]]",
    "--compare-embedding": "--embedding",
}


def refuse_replaced(args: Sequence[str]) -> None:
    """Raise InputError if the arguments of `birchbark` begin with one of REPLACED."""
    for name in (args[0], " ".join(args[:2])):
        if name in REPLACED:
            raise InputError(f"birchbark {name} is now {REPLACED[name]}")
