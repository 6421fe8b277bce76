"""How does a training network apply its linear layers, norms, activations and dropout?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Weights = Mapping[str, Any]


class Modules:
    """The modules of a network, by name.

    weights: tensors by name, without the family's prefix. epsilon: the constant that layer
    normalisation adds to the variance. dropout: the probability of dropout in training.

    Attributes:
        weights, dropout: As given.
        training: Whether dropout is applied.
    """

    def __init__(self, weights: Weights, epsilon: float, dropout: float) -> None:
        self.weights, self.dropout, self.training = weights, dropout, False
        self._epsilon = epsilon

    def linear(self, x: Any, name: str) -> Any:
        """Apply the linear layer `name`, with its bias if it has one: (…, in) → (…, out)."""
        from torch.nn.functional import linear

        return linear(x, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def norm(self, x: Any, name: str) -> Any:
        """Apply the layer normalisation `name` to the last dimension."""
        from torch.nn.functional import layer_norm

        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        return layer_norm(x, weight.shape, weight, bias, self._epsilon)

    def drop(self, x: Any) -> Any:
        """Apply dropout."""
        from torch.nn.functional import dropout

        return dropout(x, self.dropout_now) if self.dropout_now else x

    @property
    def dropout_now(self) -> float:
        """The probability of dropout, which is 0 outside training."""
        return self.dropout if self.training else 0.0

    @staticmethod
    def activate(x: Any, name: str) -> Any:
        """Apply an activation, given by its name in config.json."""
        from torch.nn.functional import gelu, relu

        if name == "tanh":
            return x.tanh()
        if name == "relu":
            return relu(x)
        return gelu(x, approximate="none" if name == "gelu" else "tanh")
