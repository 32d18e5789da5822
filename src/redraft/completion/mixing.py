"""Ranks the continuation of a language model with the suggestions from the project.

Both say how probable they are, in their own way. Two logistic regressions, one for each kind, read
both and whether they agree, and return the probability that a suggestion is right. Their weights
were trained on other projects (`experiments/lm`) and are part of the package.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from redraft.completion.continuations import MIN_WIDTH
from redraft.completion.generated_text import GeneratedEnd
from redraft.completion.project_session import (
    GROWTH,
    LEAST_PROBABLE_OTHER,
    LEAST_PROBABLE_SHORT,
    LINE_GROWTH,
    STARTER,
)
from redraft.text.tokenizer import Tokenizer
from redraft.types import Completion, Prototype

LEAST_PROBABLE = 0.18
"""Probability from which a suggestion is shown first."""

WEIGHTS = STARTER / "mixing.json"

_TINY = 1e-4

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SuggestionMixture:
    """The weights of the features of `copied_features` and of `generated_features`."""

    copied: Floats
    generated: Floats

    def rank(
        self,
        copied: Sequence[Completion],
        generated: Sequence[GeneratedEnd],
        shown: Sequence[Prototype] = (),
    ) -> list[Completion]:
        """Return the suggestions of both kinds, most probable first; none if none is probable.

        `shown` are the functions in the prompt: one that has the generated text is its source.
        """
        if not generated:
            return list(copied)
        pool = [self._recalibrated(one, generated) for one in copied if one.probability is not None]
        pool += self._chosen(copied, generated, shown)
        pool.sort(key=lambda one: (_is_short(one.text), -one.log_prob))
        ranked: list[Completion] = []
        for one in pool:
            first = LEAST_PROBABLE_SHORT if _is_short(one.text) else LEAST_PROBABLE
            least = LEAST_PROBABLE_OTHER if ranked else first
            if math.exp(one.log_prob) >= least and not any(
                _overlap(one, other) for other in ranked
            ):
                ranked.append(one)
        return ranked

    def _recalibrated(self, one: Completion, generated: Sequence[GeneratedEnd]) -> Completion:
        features = copied_features(one, generated)
        return replace(one, log_prob=_log_sigmoid(float(features @ self.copied)))

    def _chosen(
        self,
        copied: Sequence[Completion],
        generated: Sequence[GeneratedEnd],
        shown: Sequence[Prototype],
    ) -> list[Completion]:
        """Return the generated text up to the end where most of its probability is left."""
        rows = np.stack([generated_features(end, copied) for end in generated])
        scores = [_log_sigmoid(score) for score in (rows @ self.generated).tolist()]
        long = [i for i, end in enumerate(generated) if end.width >= MIN_WIDTH]
        best = max(long or range(len(generated)), key=scores.__getitem__)
        for i in range(best, len(generated)):
            growth = LINE_GROWTH if generated[i].ends_line else GROWTH
            if scores[i] >= scores[best] + math.log(growth):
                chosen = i
        text = generated[chosen].text
        source = next((one for one in shown if text.strip() in one.example.y), None)
        token = next(iter(Tokenizer().tokenize(text)), "")
        return [Completion(token, text, scores[chosen], source, is_generated=True)]


@cache
def starter_mixture() -> SuggestionMixture:
    """Return the mixture that comes with the package."""
    weights = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return SuggestionMixture(np.asarray(weights["copied"]), np.asarray(weights["generated"]))


def copied_features(one: Completion, generated: Sequence[GeneratedEnd]) -> Floats:
    """Return the features of a suggestion from the project beside a generation."""
    agrees, log_prob = _evidence(one.text.strip(), generated)
    against = 0.0 if agrees else math.log(max(_TINY, 1 - math.exp(log_prob)))
    return np.asarray(
        [1.0, _logit(one.probability or 0.0), float(agrees), log_prob if agrees else 0.0, against]
    )


def generated_features(end: GeneratedEnd, copied: Sequence[Completion]) -> Floats:
    """Return the features of a beginning of a generation beside the suggestions of the project."""
    text = end.text.strip()
    known = [one for one in copied if one.probability is not None]
    agreeing = [one.probability or 0.0 for one in known if _begins_alike(text, one.text.strip())]
    best = max((one.probability or 0.0 for one in known), default=0.0)
    return np.asarray(
        [
            1.0,
            end.log_prob,
            end.least,
            end.log_prob / end.tokens,
            math.log(max(1, end.width)),
            float(end.ends_line),
            float(not known),
            _logit(max(agreeing)) if agreeing else 0.0,
            float(bool(agreeing)),
            _logit(best) if known and not agreeing else 0.0,
        ]
    )


def _evidence(text: str, generated: Sequence[GeneratedEnd]) -> tuple[bool, float]:
    """Return whether a generation begins with `text`, and the log-probability of that beginning.

    If it does not, the log-probability is that of its beginning up to where they differ.
    """
    whole = generated[-1].text.strip()
    shared = next(
        (i for i, (a, b) in enumerate(zip(text, whole, strict=False)) if a != b),
        min(len(text), len(whole)),
    )
    covering = next((end for end in generated if end.width > shared), generated[-1])
    if shared == len(text):
        covering = next((end for end in generated if end.width >= shared), generated[-1])
        return True, covering.log_prob
    return False, covering.log_prob


def _begins_alike(text: str, other: str) -> bool:
    return text.startswith(other) or other.startswith(text)


def _overlap(one: Completion, other: Completion) -> bool:
    return _begins_alike(one.text, other.text)


def _is_short(text: str) -> bool:
    return len(text.strip()) < MIN_WIDTH


def _logit(probability: float) -> float:
    clipped = min(max(probability, _TINY), 1 - _TINY)
    return math.log(clipped / (1 - clipped))


def _log_sigmoid(score: float) -> float:
    return -math.log1p(math.exp(-score)) if score > -30 else score
