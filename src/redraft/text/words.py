"""Words of an input, as retrieval compares them."""

from redraft.text.tokenizer import JOIN, Tokenizer
from redraft.types import Input, input_text


def words(x: Input) -> list[str]:
    """Return the tokens of an input in lower case, without white space."""
    tokens = Tokenizer().tokenize(input_text(x))
    return [token.lower() for token in tokens if not token.isspace() and token != JOIN]


def shared_words(x: Input, other: Input) -> dict[str, list[str]]:
    """Return, for each field of `x`, its words that `other` has in the same field, in order."""
    shared = {}
    for name, text in x.items():
        other_words = set(words({name: other.get(name, "")}))
        shared[name] = [word for word in dict.fromkeys(words({name: text})) if word in other_words]
    return shared
