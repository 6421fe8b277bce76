"""How is attention computed within each of several inputs that are packed into one row of tokens?

Shapes: T tokens of all inputs, N inputs, L tokens per input, A attention heads, D dimensions per
head, H = A · D. All functions take queries (T, H), or (N, H) if there is one query per input, keys
and values (T, H), and where each input is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from birchbark.train.packed_inputs import Spans
from birchbark.train.positions import ScoreTerm


@dataclass(frozen=True, slots=True)
class AttentionSettings:
    """How attention is computed.

    heads: the number of heads A. dropout: the probability that an attention weight is dropped.
    scale: the factor of the products of queries and keys. term: what is added to them, if anything.
    """

    heads: int
    dropout: float
    scale: float
    term: ScoreTerm | None = None


def attend(query: Any, key: Any, value: Any, spans: Spans, settings: AttentionSettings) -> Any:
    """Return the attended values of each query (T, H), or (N, H) if there is one query per input.

    A GPU computes all inputs at once, in the precision of the arguments, unless there is a `term`.
    A CPU computes inputs of equal length together, in float32, because bf16 is slower for matrices
    as small as those of a single head.
    """
    packed = query.is_cuda and settings.term is None
    compute = attend_packed if packed else attend_by_length
    return compute(query, key, value, spans, settings)


def attend_by_length(
    query: Any, key: Any, value: Any, spans: Spans, settings: AttentionSettings
) -> Any:
    """Compute `attend` for each length of inputs separately, in float32."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    contexts = []
    with torch.autocast(query.device.type, enabled=False):
        for q, k, v in _by_length(query, key, value, spans, settings.heads):
            added = settings.term(q, k) if settings.term else None  # (inputs, A or 1, L or 1, L)
            context = scaled_dot_product_attention(
                q, k, v, attn_mask=added, dropout_p=settings.dropout, scale=settings.scale
            ).transpose(1, 2)
            contexts.append(context.reshape(-1, query.shape[1]))  # (inputs · (L or 1), H)
    return torch.cat(contexts)


def attend_packed(
    query: Any, key: Any, value: Any, spans: Spans, settings: AttentionSettings
) -> Any:
    """Compute `attend` for all inputs together, by torch's attention for jagged tensors."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    offsets, longest = spans.offsets, spans.groups[-1][1]
    single = len(query) < len(key)
    query_offsets = torch.arange(len(offsets), device=key.device) if single else offsets

    def jagged(x: Any, starts_and_end: Any, length: int) -> Any:
        rows = x.view(len(x), settings.heads, -1)  # (T, A, D)
        return torch.nested.nested_tensor_from_jagged(
            rows, starts_and_end, min_seqlen=1, max_seqlen=length
        ).transpose(1, 2)  # (N, A, L of each input, D)

    context = scaled_dot_product_attention(
        jagged(query, query_offsets, 1 if single else longest),
        jagged(key, offsets, longest),
        jagged(value, offsets, longest),
        dropout_p=settings.dropout,
        scale=settings.scale,
    )
    return context.transpose(1, 2).values().reshape(query.shape)


def attend_with_scores(
    query: Any, key: Any, value: Any, spans: Spans, settings: AttentionSettings
) -> tuple[Any, list[Any]]:
    """Compute `attend_by_length`; also return the scores before softmax.

    The scores are (inputs, A, L or 1, L) for each length.
    """
    import torch
    from torch.nn.functional import dropout as drop

    contexts, all_scores = [], []
    with torch.autocast(query.device.type, enabled=False):
        for q, k, v in _by_length(query, key, value, spans, settings.heads):
            scores = q * settings.scale @ k.transpose(2, 3)  # (inputs, A, L or 1, L)
            scores = scores + settings.term(q, k) if settings.term else scores
            all_scores.append(scores)
            weights = drop(scores.softmax(-1), settings.dropout)
            context = (weights @ v).transpose(1, 2)  # (inputs, L or 1, A, D)
            contexts.append(context.reshape(-1, query.shape[1]))
    return torch.cat(contexts), all_scores


def _by_length(query: Any, key: Any, value: Any, spans: Spans, heads: int) -> Any:
    """Yield queries, keys and values, float32 (inputs, A, L or 1, D), for each length of inputs."""
    single = len(query) < len(key)
    sizes = [count * length for count, length in spans.groups]
    query_sizes = [count for count, _ in spans.groups] if single else sizes
    parts = (
        query.float().split(query_sizes),
        key.float().split(sizes),
        value.float().split(sizes),
    )
    for (count, _), *rows in zip(spans.groups, *parts, strict=True):
        yield tuple(x.view(count, -1, heads, x.shape[1] // heads).transpose(1, 2) for x in rows)
