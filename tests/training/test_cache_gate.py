"""A cache fitted on held-out outputs helps only where they repeat other outputs."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch

from redraft import Example
from redraft.editing.decoding import DecodingConfig
from redraft.editing.forced_decoding import follow
from redraft.editing.neural import NeuralEditor
from redraft.models.config import EditNetworkConfig
from redraft.models.ngram_cache import NgramCache, evidence_of
from redraft.text.edit_encoder import EditEncoder, EditEncoderConfig
from redraft.training.cache_gate import FLOOR, fit_cache
from redraft.types import Prototype

WORDS = [f"w{at}" for at in range(40)]
OTHERS = [f"o{at}" for at in range(40)]
RUN, OWN = 8, 3

Found = list[list[Prototype]]


def output(words: Sequence[str]) -> Example:
    return Example({"text": "write"}, " ".join(words))


def repeating(count: int, *, seed: int) -> tuple[list[Example], Found]:
    """Words of one's own, then a run that stands in the third of the prototypes."""
    rng = random.Random(seed)
    examples, found = [], []
    for _ in range(count):
        run = rng.sample(WORDS, RUN)
        examples.append(output([*rng.sample(WORDS, OWN), *run]))
        others = [output(rng.sample(WORDS, RUN)) for _ in range(2)]
        nearest = [*others, output([*rng.sample(WORDS, OWN), *run])]
        found.append([Prototype(each, float(at)) for at, each in enumerate(nearest)])
    return examples, found


def unlike(count: int, *, seed: int) -> tuple[list[Example], Found]:
    """Outputs that have no word in common with their prototypes, nor any word twice."""
    rng = random.Random(seed)
    examples = [output(rng.sample(WORDS, RUN)) for _ in range(count)]
    nearest = [[output(rng.sample(OTHERS, RUN)) for _ in range(3)] for _ in range(count)]
    return examples, [[Prototype(each, 1.0) for each in row] for row in nearest]


@pytest.fixture
def editor() -> NeuralEditor:
    """One that learned nothing, and reads only the first prototype."""
    encoding = EditEncoder.learn([output(WORDS), output(OTHERS)], EditEncoderConfig(), min_count=1)
    config = EditNetworkConfig(word_width=8, width=8, decoder_layers=1)
    torch.manual_seed(0)
    return NeuralEditor.build(
        encoding, config, DecodingConfig(max_length=20, ngram_cache_neighbours=3)
    )


@dataclass(frozen=True)
class Judged:
    """The mean log-likelihood of the true words, none below the floor, and the cache's share."""

    editor: float
    cache: float
    mixture: float
    share: float


@torch.no_grad()
def validate(
    editor: NeuralEditor, cache: NgramCache, examples: list[Example], found: Found
) -> Judged:
    parts = []
    for step in follow(editor.with_cache(cache), examples, found):
        predicted = cache(step.cache, step.expected.shape[1])
        share = cache.share(predicted, evidence_of(step.expected, predicted))
        mixed = cache.mix(step.expected, step.cache).exp()
        each = [
            (table.gather(1, step.tokens[:, None])[:, 0] + FLOOR).log()
            for table in (step.expected.exp(), predicted.probs, mixed)
        ]
        parts.append(torch.stack([*each, share], 1))
    return Judged(*torch.cat(parts).mean(0).tolist())


def test_where_outputs_repeat_others_the_mixture_beats_the_editor_and_the_cache(
    editor: NeuralEditor,
) -> None:
    cache = fit_cache(editor, *repeating(40, seed=0))
    validated = validate(editor, cache, *repeating(30, seed=1))
    assert validated.mixture > validated.editor + 1
    assert validated.mixture > validated.cache + 0.3
    untrained = validate(editor, NgramCache(), *repeating(30, seed=1))
    assert validated.mixture > untrained.mixture
    assert validated.cache >= untrained.cache


def test_without_overlap_the_cache_gets_almost_no_weight(editor: NeuralEditor) -> None:
    cache = fit_cache(editor, *unlike(40, seed=0))
    validated = validate(editor, cache, *unlike(30, seed=1))
    assert validated.share < 0.1
    assert validated.mixture > validated.editor - 0.05


def test_a_long_match_weighs_more_than_a_short_one_once_it_was_learned(
    editor: NeuralEditor,
) -> None:
    cache = fit_cache(editor, *repeating(40, seed=0))
    # a single word agrees by chance, several never do
    assert cache.lengths[3] - cache.lengths[0] > cache.lengths[1] - cache.lengths[0] > 1
    evidence = torch.tensor([[0.0, -3.0, -5.0, -5.0, 0.0]]).expand(2, -1)
    short, long = cache.gate(torch.tensor([0, 3]), evidence).tolist()
    assert long > short


def test_fitting_is_deterministic_and_does_not_change_the_editor(editor: NeuralEditor) -> None:
    before = {name: each.clone() for name, each in editor.network.state_dict().items()}
    one, other = (fit_cache(editor, *repeating(10, seed=0)) for _ in range(2))
    assert all(
        torch.equal(each, before[name]) for name, each in editor.network.state_dict().items()
    )
    assert editor.cache is None
    for name, each in one.state_dict().items():
        torch.testing.assert_close(each, other.state_dict()[name])
        assert each.isfinite().all()
