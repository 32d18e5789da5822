"""Next-token accuracy, against the probabilities of every token."""

import torch

from redraft.editing.forced_decoding import follow
from redraft.editing.neural import NeuralEditor
from redraft.metrics.next_token import first_choice_share
from redraft.types import Example
from tests.greetings import NAMES, greeter, greeting


def test_first_choices_are_the_most_probable_tokens() -> None:
    editor = greeter().editor
    assert isinstance(editor, NeuralEditor)
    examples = [Example({"text": "greet Ada"}, "nowhere(hello)"), *map(greeting, NAMES[:5])]
    prototypes = greeter().retriever.retrieve([example.x for example in examples], editor.wants(1))
    is_first = torch.cat(
        [step.expected.argmax(1) == step.tokens for step in follow(editor, examples, prototypes)]
    )
    assert 0 < is_first.float().mean() < 1
    assert first_choice_share(editor, examples, prototypes) == is_first.double().mean()
