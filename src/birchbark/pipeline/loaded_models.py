"""Which models are loaded? Each is loaded when it is first needed, and then shared."""

from __future__ import annotations

from threading import Lock

from birchbark.score.duo import DuoScorer, load_duo_scorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.session import SessionFactory


class LoadedModels:
    """Models by name, each loaded once per precision, for any number of threads.

    Args:
        threads: CPU threads of each model, at least 1. Defaults to None: as
            `default_threads` says.
        session: Opens the sessions that run the models, see `load_scorer`. Defaults to None: ONNX
            Runtime on the CPU.
    """

    def __init__(self, threads: int | None = None, session: SessionFactory | None = None) -> None:
        self._threads, self._session, self._lock = threads, session, Lock()
        self._scorers: dict[tuple[str, Precision, str | None], Scorer] = {}
        self._duo_scorers: dict[tuple[str, Precision], DuoScorer] = {}

    def scorer(
        self, model: str, precision: Precision = Precision.FP32, pooling: str | None = None
    ) -> Scorer:
        """Return the scorer of a model; raises the errors of `load_scorer`.

        Args:
            model: The model's name or directory.
            precision: Arithmetic of the linear layers. Defaults to FP32.
            pooling: How token vectors become a text's, such as `mean` or `max:11`. Defaults to
                None: as the model itself says.
        """
        key = model, precision, pooling
        with self._lock:
            if key not in self._scorers:
                self._scorers[key] = load_scorer(
                    model, self._threads, pooling or None, precision, self._session
                )
            return self._scorers[key]

    def duo_scorer(self, model: str, precision: Precision = Precision.FP32) -> DuoScorer:
        """Return the scorer of a model that compares two texts; raises the errors of its loader."""
        key = model, precision
        with self._lock:
            if key not in self._duo_scorers:
                self._duo_scorers[key] = load_duo_scorer(
                    model, self._threads, precision, self._session
                )
            return self._duo_scorers[key]
