"""How is birchbark evaluated with MTEB, on retrieval and re-ranking tasks?

mteb.evaluate(BirchbarkSearch(), mteb.get_tasks(["SciFact"]))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, Literal

from birchbark import defaults
from birchbark._version import __version__
from birchbark.adapters.memory_collection import MemoryCollection
from birchbark.checkpoint.locate import open_named
from birchbark.errors import InputError, extra
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.vector_scorer import embedding_scorer

with extra("mteb"):
    from mteb.models import ModelMeta

# Tasks of MTEB whose queries or documents the bundled models have read in training, by their cards
# and by MTEB's own record of all-MiniLM-L6-v2. Of SciFact: the training claims. CQADupstack is not
# among them, although the embedding has read questions of Stack Exchange: which ones is not known.
TRAINED_ON = {
    *("MSMARCO", "MSMARCOHardNegatives", "NanoMSMARCORetrieval", "mMARCO-NL", "MSMARCO-PL"),
    *("NQ", "NQHardNegatives", "NanoNQRetrieval", "NQ-NL", "NQ-PL"),
    *("QuoraRetrieval", "QuoraRetrievalHardNegatives", "QuoraRetrievalHardNegatives.v2"),
    *("NanoQuoraRetrieval", "Quora-NL", "Quora-PL", "Quora-PLHardNegatives"),
    *("SciFact", "NanoSciFactRetrieval", "SciFact-NL", "SciFact-PL", "MedicalQARetrieval"),
}
BUNDLED = (defaults.MODEL, defaults.SMALL_MODEL, defaults.EMBEDDING)


class BirchbarkSearch(MemoryCollection):
    """Searches MTEB's collections: BM25's candidates, re-ranked as by `birchbark rerank`.

    In a re-ranking task, the candidates are those of the task. It follows MTEB's `SearchProtocol`.
    For the arguments see `MemoryCollection`.
    """

    @cached_property
    def mteb_model_meta(self) -> ModelMeta:
        """The description of the models; its revision differs if any of their settings do."""
        return _meta(self)

    def index(self, corpus: Iterable[Mapping[str, Any]], **kwargs: Any) -> None:
        """Index documents with `id`, `text` and, if they have one, `title`; see MTEB."""
        self.index_records(
            {"id": row["id"], "title": row.get("title"), "text": row.get("text") or ""}
            for row in corpus
        )

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> dict[str, dict[str, float]]:
        """Rank documents for each query: query id → document id → score; see MTEB.

        Raises InputError if a query is not a text, or too long for a model.
        """
        texts: dict[str, str] = {}
        for query in queries:
            if not isinstance(query.get("text"), str):
                raise InputError("a query is not a text", where=f"query {query['id']}")
            texts[query["id"]] = query["text"]
        return self.rank(texts, top_k, top_ranked)


def _meta(collection: MemoryCollection) -> ModelMeta:
    """Describe the models of a collection; their sizes are known if the model was named."""
    model, rankers = collection.model, collection.rankers
    sizes = rankers == () or isinstance(model, str | Path)
    names = [str(model)] if rankers else []
    if any(ranker.embedding for ranker in rankers):
        names.append(defaults.EMBEDDING)
    checkpoints = [open_named(name) for name in names] if sizes else []
    parameters = sum(checkpoint.parameters for checkpoint in checkpoints)
    widths = [(c.config.vocabulary, c.config.embedding) for c in checkpoints]
    settings = repr(_plain((collection.first_stage, rankers)))
    if not rankers:
        name = collection.first_stage.name
    else:
        name = Path(model).name if isinstance(model, str | Path) else rankers[0].scorer.name
    trained = TRAINED_ON if names else set()  # BM25 has learnt nothing
    bundled = bool(sizes) and set(names).issubset(BUNDLED)
    return ModelMeta(
        loader=None,
        name=f"birchbark/{name.replace(' ', '-')}",
        revision=f"{__version__}-{sha256(settings.encode()).hexdigest()[:12]}",
        release_date=None,
        languages=["eng-Latn"],
        n_parameters=parameters if sizes else None,
        n_embedding_parameters=sum(map(prod, widths)) if sizes else None,
        memory_usage_mb=parameters * 4 / 2**20 if sizes else None,
        max_tokens=None,  # long documents are split
        embed_dim=None,
        # that of the cross-encoders depends on data whose licences are not settled
        license="apache-2.0" if bundled and set(names) <= {defaults.EMBEDDING} else None,
        open_weights=bundled,
        public_training_code=None,
        public_training_data=None,
        framework=["ONNX", "safetensors"] if rankers else [],
        similarity_fn_name=None,
        use_instructions=False,
        training_datasets=trained if bundled else None,
        model_type=[_kind(rankers)],
    )


def _kind(rankers: Sequence[Ranker]) -> Literal["cross-encoder", "dense", "sparse"]:
    if not rankers:
        return "sparse"
    return "dense" if all(embedding_scorer(r.scorer) for r in rankers) else "cross-encoder"


def _plain(value: Any) -> Any:
    """Return settings as values whose representation depends on nothing else."""
    if hasattr(value, "fingerprint"):
        return value.fingerprint
    if is_dataclass(value):
        settings = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return [type(value).__name__, settings]
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return value
