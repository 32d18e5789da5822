"""A cache fitted to outputs that are held out: it helps where they repeat others, only there."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch

from redraft import Example
from redraft.data.edit_numbers import EditNumbering, EditNumberingConfig
from redraft.editing.known_outputs import follow
from redraft.editing.neural_editor import DecodingConfig, NeuralEditor
from redraft.models.edit_network import EditNetworkConfig
from redraft.models.ngram_cache import NgramCache, evidence_of
from redraft.retrieval.prototype import Prototype
from redraft.training.fit_cache import FLOOR, fit_cache

WORDS = [f"w{at}" for at in range(40)]
OTHERS = [f"o{at}" for at in range(40)]
RUN, OWN = 8, 3

Found = list[list[Prototype]]


def output(words: Sequence[str]) -> Example:
    return Example({"text": "write"}, " ".join(words))


def repeating(count: int, *, seed: int) -> tuple[list[Example], Found]:
    """Words of one's own, then a run that stands in the third of the prototypes."""
    chance = random.Random(seed)
    examples, found = [], []
    for _ in range(count):
        run = chance.sample(WORDS, RUN)
        examples.append(output([*chance.sample(WORDS, OWN), *run]))
        others = [output(chance.sample(WORDS, RUN)) for _ in range(2)]
        nearest = [*others, output([*chance.sample(WORDS, OWN), *run])]
        found.append([Prototype(each, float(at)) for at, each in enumerate(nearest)])
    return examples, found


def unlike(count: int, *, seed: int) -> tuple[list[Example], Found]:
    """Outputs that have no word in common with their prototypes, nor any word twice."""
    chance = random.Random(seed)
    examples = [output(chance.sample(WORDS, RUN)) for _ in range(count)]
    nearest = [[output(chance.sample(OTHERS, RUN)) for _ in range(3)] for _ in range(count)]
    return examples, [[Prototype(each, 1.0) for each in row] for row in nearest]


@pytest.fixture
def editor() -> NeuralEditor:
    """One that learned nothing, and reads only the first prototype."""
    numbering = EditNumbering.learn(
        [output(WORDS), output(OTHERS)], EditNumberingConfig(min_count=1)
    )
    config = EditNetworkConfig(
        word_width=8, slot_width=4, width=8, heads=2, encoder_layers=1, decoder_layers=1
    )
    torch.manual_seed(0)
    return NeuralEditor.build(numbering, config, DecodingConfig(max_length=20, cached=3))


@dataclass(frozen=True)
class Judged:
    """The mean log-likelihood of the true words, none below the floor, and the cache's share."""

    editor: float
    cache: float
    mixture: float
    share: float


@torch.no_grad()
def judge(editor: NeuralEditor, cache: NgramCache, examples: list[Example], found: Found) -> Judged:
    parts = []
    for step in follow(editor.with_cache(cache), examples, found):
        foreseen = cache(step.cache, step.expected.shape[1])
        share = cache.share(foreseen, evidence_of(step.expected, foreseen))
        mixed = cache.mix(step.expected, step.cache).exp()
        each = [
            (table.gather(1, step.tokens[:, None])[:, 0] + FLOOR).log()
            for table in (step.expected.exp(), foreseen.chances, mixed)
        ]
        parts.append(torch.stack([*each, share], 1))
    return Judged(*torch.cat(parts).mean(0).tolist())


def test_where_outputs_repeat_others_the_mixture_beats_the_editor_and_the_cache(
    editor: NeuralEditor,
) -> None:
    cache = fit_cache(editor, *repeating(40, seed=0))
    judged = judge(editor, cache, *repeating(30, seed=1))
    assert judged.mixture > judged.editor + 1
    assert judged.mixture > judged.cache + 0.3
    untrained = judge(editor, NgramCache(), *repeating(30, seed=1))
    assert judged.mixture > untrained.mixture
    assert judged.cache >= untrained.cache


def test_where_nothing_is_in_common_the_cache_has_hardly_a_share(editor: NeuralEditor) -> None:
    cache = fit_cache(editor, *unlike(40, seed=0))
    judged = judge(editor, cache, *unlike(30, seed=1))
    assert judged.share < 0.1
    assert judged.mixture > judged.editor - 0.05


def test_a_long_match_weighs_more_than_a_short_one_once_it_was_learned(
    editor: NeuralEditor,
) -> None:
    cache = fit_cache(editor, *repeating(40, seed=0))
    # a single word agrees by chance, several never do
    assert cache.lengths[3] - cache.lengths[0] > cache.lengths[1] - cache.lengths[0] > 1
    evidence = torch.tensor([[0.0, -3.0, -5.0, -5.0, 0.0]]).expand(2, -1)
    short, long = cache.gate(torch.tensor([0, 3]), evidence).tolist()
    assert long > short


def test_fitting_leaves_the_editor_as_it_was_and_finds_the_same_again(editor: NeuralEditor) -> None:
    before = {name: each.clone() for name, each in editor.network.state_dict().items()}
    one, other = (fit_cache(editor, *repeating(10, seed=0)) for _ in range(2))
    assert all(
        torch.equal(each, before[name]) for name, each in editor.network.state_dict().items()
    )
    assert editor.cache is None
    for name, each in one.state_dict().items():
        torch.testing.assert_close(each, other.state_dict()[name])
        assert each.isfinite().all()
