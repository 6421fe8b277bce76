"""How is attention computed within each of several inputs that are packed into one row of tokens?

The inputs of a block are computed together, padded to the longest of them (packed_inputs.py).

Shapes: T tokens of all inputs, N inputs, L tokens per input, A attention heads, D dimensions per
head, H = A · D. All functions take queries (T, H), or (N, H) if there is one query per input, keys
and values (T, H), and where each input is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from birchbark.train.packed_inputs import Block, Spans
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

    A GPU computes in the precision of the arguments, unless there is a `term`. A CPU computes in
    float32, because bf16 is slower for matrices as small as those of a single head. cuDNN's
    attention is not used: it plans for each new shape, which takes 15 ms, and shapes change with
    every batch.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    kernels = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

    exact = not query.is_cuda or settings.term is not None
    if exact:
        query, key, value = query.float(), key.float(), value.float()
    contexts = []
    precision = torch.autocast(query.device.type, enabled=False) if exact else nullcontext()
    with precision, sdpa_kernel(kernels):
        for block, q, k, v in _by_block(query, key, value, spans, settings.heads):
            context = scaled_dot_product_attention(
                q,
                k,
                v,
                attn_mask=_added(block, q, k, settings),
                dropout_p=settings.dropout,
                scale=settings.scale,
            )
            contexts.append(_rows(context, block))
    return torch.cat(contexts)


def attend_with_scores(
    query: Any, key: Any, value: Any, spans: Spans, settings: AttentionSettings
) -> tuple[Any, list[Any]]:
    """Compute `attend` in float32; also return the scores before softmax.

    The scores are (inputs, A, L or 1, L) for each block, with numbers that mean nothing where there
    is padding.
    """
    import torch
    from torch.nn.functional import dropout as drop

    query, key, value = query.float(), key.float(), value.float()
    contexts, all_scores = [], []
    with torch.autocast(query.device.type, enabled=False):
        for block, q, k, v in _by_block(query, key, value, spans, settings.heads):
            scores = q * settings.scale @ k.transpose(2, 3)  # (inputs, A, L or 1, L)
            scores = scores + settings.term(q, k) if settings.term else scores
            all_scores.append(scores)
            masked = scores + block.padding.mask if block.padding else scores
            weights = drop(masked.softmax(-1), settings.dropout)
            contexts.append(_rows(weights @ v, block))
    return torch.cat(contexts), all_scores


def _added(block: Block, query: Any, key: Any, settings: AttentionSettings) -> Any:
    """Return what is added to a block's scores, (inputs, A or 1, L or 1, L), or None."""
    term = settings.term(query, key) if settings.term else None
    if block.padding is None:
        return term
    mask = block.padding.mask.to(query.dtype)
    return mask if term is None else term + mask


def _by_block(
    query: Any, key: Any, value: Any, spans: Spans, heads: int
) -> Iterator[tuple[Block, Any, Any, Any]]:
    """Yield each block with its queries, keys and values, (inputs, A, L or 1, L), padded."""
    single = len(query) < len(key)
    sizes = [block.tokens for block in spans.blocks]
    query_sizes = [block.inputs for block in spans.blocks] if single else sizes
    parts = query.split(query_sizes), key.split(sizes), value.split(sizes)
    for block, *rows in zip(spans.blocks, *parts, strict=True):
        padded = (
            x
            if block.padding is None or len(x) == block.inputs < block.tokens
            else x.index_select(0, block.padding.source)
            for x in rows
        )
        q, k, v = (
            x.view(block.inputs, -1, heads, x.shape[1] // heads).transpose(1, 2) for x in padded
        )
        yield block, q, k, v


def _rows(context: Any, block: Block) -> Any:
    """Return a block's attended values (inputs, A, L or 1, D) as rows (tokens or inputs, H)."""
    rows = context.transpose(1, 2).reshape(-1, context.shape[1] * context.shape[3])
    if block.padding is None or context.shape[2] < block.length:
        return rows
    return rows.index_select(0, block.padding.places)
