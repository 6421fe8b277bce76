"""How does a model's output become a score from 0 to 1 that can be mixed with other scores?

A cross-encoder trained on MS MARCO says −11 or +11: the sigmoid of such log-odds is 0 or 1, and the
order of the texts within each group is lost beside other scores. The cosines of one embedding lie
between 0 and 0.8, those of another between 0.6 and 0.9. A model therefore states its scale in its
config.json, for example `"birchbark": {"temperature": 3.0}`; `birchbark model calibrate` fits it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.json_files import read_object
from birchbark.errors import CheckpointError
from birchbark.records import Float32s

SHIFT, TEMPERATURE = "shift", "temperature"  # keys in config.json, under HEAD_KEY
SCALE_KEYS = (SHIFT, TEMPERATURE)
MOST = 1e6  # of either number
FLOOR = 1e-6  # a score that counts for nothing
CEILING = 1 - 1e-3  # one that counts in full


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """The scale of a model's scores: (output − shift) / temperature becomes a score.

    Attributes:
        shift: The output that is subtracted, in log-odds for a classifier, as a cosine for an
            embedding. Default: 0.
        temperature: The number above 0 that the rest is divided by. Default: 1.
        stated: Whether the model states its scale. Default: False.
    """

    shift: float = 0.0
    temperature: float = 1.0
    stated: bool = False

    @property
    def fingerprint(self) -> str:
        """A text that differs between scales; empty for a scale that is not stated."""
        return f"-scale {self.shift!r} {self.temperature!r}" if self.stated else ""

    def probabilities(self, log_odds: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sigmoid of scaled log-odds (n,)."""
        probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-self._scaled(log_odds)))
        return probabilities

    def log_odds(self, probabilities: NDArray[Any]) -> NDArray[np.float64]:
        """Return the log-odds (n,) that `probabilities` maps to these (n,), within rounding."""
        inside = np.clip(probabilities.astype(np.float64), 1e-7, 1 - 1e-7)
        log_odds: NDArray[np.float64] = np.log(inside / (1 - inside)) * self.temperature
        return log_odds + self.shift

    def similarities(self, cosines: Float32s) -> Float32s:
        """Return scaled cosines (n,), those below 0 and above 1 clipped, as float32 (n,)."""
        clipped: Float32s = np.clip(self._scaled(cosines), 0, 1).astype(np.float32)
        return clipped

    def cosines(self, similarities: Float32s) -> Float32s:
        """Return the cosines (n,) that `similarities` maps to these (n,), if none was clipped."""
        cosines: Float32s = (similarities * self.temperature + self.shift).astype(np.float32)
        return cosines

    def ordered_similarities(self, cosines: Float32s) -> Float32s:
        """Return `similarities`, of which those below FLOOR are at most FLOOR, in their order."""
        scaled = self._scaled(cosines)
        low = FLOOR * np.exp(np.minimum(scaled - FLOOR, 0))
        ordered: Float32s = np.clip(np.where(scaled > FLOOR, scaled, low), 0, 1).astype(np.float32)
        return ordered

    def ranking_similarities(self, cosines: Float32s) -> Float32s:
        """Return `ordered_similarities`, of which those above CEILING keep their order as well.

        A ranking by cosines is not by `similarities`: those of the best texts may all be 1.
        """
        scaled = self._scaled(cosines)
        high = 1 - (1 - CEILING) / (1 + np.maximum(scaled - CEILING, 0))
        ordered = self.ordered_similarities(cosines)
        return np.where(scaled > CEILING, high, ordered).astype(np.float32)

    def _scaled(self, outputs: NDArray[Any]) -> NDArray[np.float64]:
        scaled: NDArray[np.float64] = (outputs.astype(np.float64) - self.shift) / self.temperature
        return scaled

    def as_config(self) -> dict[str, float]:
        """Return the keys that state this scale in config.json."""
        return {key: value for key, value in asdict(self).items() if key in SCALE_KEYS}


def read_scale(stated: Mapping[str, Any], where: str) -> ScoreScale:
    """Return the scale that a model states, under HEAD_KEY in its config.json.

    where: the file, for messages. Raises CheckpointError for a value that is no number, or a
    temperature that is not above 0.
    """
    values = {key: stated[key] for key in SCALE_KEYS if key in stated}
    for key, value in values.items():
        number = type(value) in (int, float) and abs(value) < MOST
        if not number or (key == TEMPERATURE and value <= 0):
            wanted = "a number above 0" if key == TEMPERATURE else "a number"
            raise CheckpointError(f"invalid {key}", where=where, wanted=wanted, found=repr(value))
    return ScoreScale(**{k: float(x) for k, x in values.items()}, stated=bool(values))


def without_scale(config: Path, key: str) -> Path | bytes:
    """Return a config.json that states no scale, or the content that it would have without it.

    key: the key in the file under which a scale is stated. Raises CheckpointError for a damaged
    file.
    """
    values = read_object(config)
    own = values.get(key)
    if not isinstance(own, dict) or not own.keys() & set(SCALE_KEYS):
        return config
    rest = {name: value for name, value in own.items() if name not in SCALE_KEYS}
    values |= {key: rest}
    if not rest:
        del values[key]
    return (json.dumps(values, indent=2) + "\n").encode()
