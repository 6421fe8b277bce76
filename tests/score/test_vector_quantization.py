"""Are vectors of 16 and 8 bits compared as the numbers that they stand for?"""

from __future__ import annotations

import numpy as np
import pytest

from birchbark.errors import InputError
from birchbark.score.vector_quantization import (
    BLOCK,
    dequantize_vectors,
    inner_products,
    quantize_vectors,
)


def test_vectors_are_rounded() -> None:
    """With 8 bits, the largest number of each vector is 127 of its steps."""
    vectors = np.array([[1.0, -0.5, 0.0], [0.254, 0.002, -0.127]], np.float32)
    assert quantize_vectors(vectors, 16)["vectors"].dtype == np.float16
    quantized = quantize_vectors(vectors, 8)
    assert quantized["vectors"].tolist() == [[127, -64, 0], [127, 1, -64]]
    np.testing.assert_allclose(quantized["scales"], [1 / 127, 0.002], rtol=1e-6)
    np.testing.assert_allclose(dequantize_vectors(quantized)[1], [0.254, 0.002, -0.128], rtol=1e-6)


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("count", [0, 1, BLOCK + 3])
def test_products_are_those_of_the_vectors_that_are_meant(bits: int, count: int) -> None:
    """They are so for any number of blocks, and for numbers too small for a normal float16."""
    random = np.random.default_rng(count)
    vectors = random.normal(0, 1, (count, 16)).astype(np.float32)
    vectors[:, 0] = np.float32(2.0**-20)
    query = random.normal(0, 1, 16).astype(np.float32)
    quantized = quantize_vectors(vectors, bits)
    expected = dequantize_vectors(quantized) @ query
    np.testing.assert_allclose(inner_products(quantized, query), expected, atol=1e-5)


def test_other_numbers_of_bits_are_refused() -> None:
    """The error lists those that can be stored."""
    with pytest.raises(InputError, match="number of bits: expected 16 or 8, found 4"):
        quantize_vectors(np.zeros((1, 2), np.float32), 4)
