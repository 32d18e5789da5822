"""A state cache fitted to outputs that are held out: others come to be likelier by it."""

import random
from collections.abc import Sequence

import pytest
import torch

from redraft import Example, RetrieveAndEdit
from redraft.data.edit_numbers import EditNumbering, EditNumberingConfig
from redraft.editing.neural_editor import DecodingConfig, NeuralEditor
from redraft.fitting import FitOptions
from redraft.models.edit_network import EditNetworkConfig
from redraft.models.state_cache import StateCache
from redraft.retrieval.prototype import Prototype
from redraft.training.fit_state_cache import MOST, fit_state_cache
from tests.greetings import NAMES, greeting, settings

WORDS = [f"w{at}" for at in range(20)]
OTHERS = [f"o{at}" for at in range(20)]
RUN = 5

Found = list[list[Prototype]]
Held = tuple[list[Example], Found]


def output(words: Sequence[str]) -> Example:
    return Example({"text": "write"}, " ".join(words))


def repeating(count: int, *, seed: int) -> Held:
    """Outputs that stand, word for word, in the second of their prototypes."""
    chance = random.Random(seed)
    examples, found = [], []
    for _ in range(count):
        examples.append(output(chance.sample(WORDS, RUN)))
        nearest = [output(chance.sample(WORDS, RUN)), examples[-1]]
        found.append([Prototype(each, float(at)) for at, each in enumerate(nearest)])
    return examples, found


def unlike(count: int, *, seed: int) -> Held:
    """Outputs that have no word in common with their prototypes."""
    chance = random.Random(seed)
    examples = [output(chance.sample(WORDS, RUN)) for _ in range(count)]
    nearest = [[output(chance.sample(OTHERS, RUN)) for _ in range(2)] for _ in range(count)]
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
    return NeuralEditor.build(numbering, config, DecodingConfig(max_length=20, remembered=2))


@torch.inference_mode()
def log_likelihood(editor: NeuralEditor, held: Held) -> float:
    """That of a word, on average, each output walked over word by word and alone."""
    total, words = 0.0, 0
    for example, found in zip(*held, strict=True):
        tokens = editor.numbering.tokenize_output(example.y)
        question = editor.question(example.x, found, tokens)
        walk, state = editor.start_walk([question])
        first, *others = question.edits[0].target
        expected, state = walk.advance(state, torch.tensor([[first]]))
        for token in others:
            total += float(expected[0, token])
            expected, state = walk.advance(state, torch.tensor([[token]]))
        words += len(others)
    return total / words


def values(cache: StateCache) -> list[float]:
    return [float(each) for each in cache.state_dict().values()]


@pytest.mark.parametrize("prototypes", [1, 2])
def test_outputs_that_repeat_others_are_likelier_by_the_fitted_cache(
    editor: NeuralEditor, prototypes: int
) -> None:
    cache = fit_state_cache(editor, *repeating(30, seed=0))
    decoding = DecodingConfig(max_length=20, remembered=2, prototypes=prototypes)
    asked, held = editor.with_decoding(decoding), repeating(15, seed=1)
    prior = log_likelihood(asked.with_state_cache(StateCache().requires_grad_(False)), held)
    fitted = log_likelihood(asked.with_state_cache(cache), held)
    assert fitted > prior + 0.3
    assert fitted > log_likelihood(asked, held) + 0.3


def test_where_nothing_is_in_common_the_cache_is_hardly_heard(editor: NeuralEditor) -> None:
    cache, held = fit_state_cache(editor, *unlike(30, seed=0)), unlike(15, seed=1)
    prior = log_likelihood(editor.with_state_cache(StateCache().requires_grad_(False)), held)
    fitted = log_likelihood(editor.with_state_cache(cache), held)
    assert fitted > prior
    assert fitted > log_likelihood(editor, held) - 0.1


def test_the_example_that_helps_comes_to_weigh_more_whatever_its_rank(
    editor: NeuralEditor,
) -> None:
    second = fit_state_cache(editor, *repeating(30, seed=0))
    examples, found = repeating(30, seed=0)
    first = fit_state_cache(editor, examples, [row[::-1] for row in found])
    assert second.rank < first.rank


def test_where_nothing_is_held_out_the_weights_are_the_prior_ones(editor: NeuralEditor) -> None:
    assert values(fit_state_cache(editor, [], [])) == values(StateCache())


def test_outputs_for_which_nothing_is_found_teach_nothing(editor: NeuralEditor) -> None:
    examples, found = repeating(12, seed=0)
    assert values(fit_state_cache(editor, examples, [[]] * 12)) == values(StateCache())
    more = [*examples, *repeating(7, seed=1)[0]]
    mixed = fit_state_cache(editor, more, [*found, *[[]] * 7])
    assert values(mixed) == pytest.approx(
        values(fit_state_cache(editor, examples, found)), abs=0.01
    )


def test_no_more_outputs_are_looked_at_than_are_said(editor: NeuralEditor) -> None:
    examples, found = repeating(MOST, seed=0)
    more, of_more = unlike(10, seed=0)
    fitted = fit_state_cache(editor, [*examples, *more], [*found, *of_more])
    assert values(fitted) == values(fit_state_cache(editor, examples, found))


def test_fitting_leaves_the_editor_as_it_was_and_finds_the_same_again(editor: NeuralEditor) -> None:
    before = {name: each.clone() for name, each in editor.network.state_dict().items()}
    one, other = (fit_state_cache(editor, *repeating(10, seed=0)) for _ in range(2))
    assert all(
        torch.equal(each, before[name]) for name, each in editor.network.state_dict().items()
    )
    assert editor.state_cache is None
    assert values(one) == values(other) != values(StateCache())
    assert not any(each.requires_grad for each in one.parameters())


def fitted_model(count: int, retriever: str) -> NeuralEditor:
    """The editor of a model that is to remember three examples, all but untrained."""
    given = settings(2)
    remembering = {**given["editor"]["decoding"], "remembered": 3}
    editor = {**given["editor"], "decoding": remembering}
    model = RetrieveAndEdit.fit(
        [greeting(name) for name in NAMES[:count]],
        retriever=retriever,
        options=FitOptions({**given, "editor": editor}),
    )
    assert isinstance(model.editor, NeuralEditor)
    return model.editor


def test_a_model_that_remembers_has_a_cache_fitted_to_what_is_held_out() -> None:
    fitted, prior = fitted_model(20, "lexical"), fitted_model(10, "lexical")
    assert fitted.state_cache is not None
    assert prior.state_cache is not None
    assert fitted.wants(1) == prior.wants(1) == 3
    assert values(fitted.state_cache) != values(StateCache())
    assert values(prior.state_cache) == values(StateCache())  # so few that none is held out


def test_a_model_without_a_retriever_remembers_nothing() -> None:
    editor = fitted_model(20, "none")
    assert editor.numbering.config.prototypes == 0
    assert editor.state_cache is None
    assert editor.decoding.remembered == editor.wants(1) == 0
    assert editor.question({"text": "greet Ada"}, []).edits[0].remembered == []
