"""How do scorers that know nothing of each other's texts share one copy of a model's weights?

A scorer remembers vectors of texts, and a searcher remembers scores, so a query is only timed as a
new one if both are new. Since loading a model takes a second, new scorers share its session.
"""

from __future__ import annotations

from birchbark import load_scorer
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.session import OnnxSession


class Models:
    """Loads each model once per precision."""

    def __init__(self) -> None:
        """Load nothing yet."""
        self._sessions: dict[tuple[str, Precision], OnnxSession] = {}

    def load(self, name: str, precision: Precision = Precision.FP32) -> Scorer:
        """Return a new scorer of the model, which remembers nothing."""
        return load_scorer(name, precision=precision, session=self._session)

    def _session(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        *,
        precision: Precision = Precision.FP32,
    ) -> OnnxSession:
        key = str(checkpoint.directory), precision
        if key not in self._sessions:
            self._sessions[key] = OnnxSession(checkpoint, threads, precision=precision)
        return self._sessions[key]
