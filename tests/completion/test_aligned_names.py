"""Occurrences that match but for names."""

import numpy as np

from redraft.completion.aligned_names import Alignment, WordTables, aligned_in_streams
from redraft.completion.context_tables import END, START
from redraft.completion.continuations import Stream
from redraft.completion.ngram_index import token_widths
from redraft.completion.word_classes import EDGES, word_classes
from redraft.text.tokenizer import JOIN, Tokenizer, detokenize


class Vocabulary:
    """WordTables with ids, in the order in which they are met."""

    def __init__(self) -> None:
        self.words = [*EDGES, JOIN]

    def encode(self, text: str) -> list[int]:
        tokens = Tokenizer().tokenize(text)
        self.words += [token for token in dict.fromkeys(tokens) if token not in self.words]
        return [self.words.index(token) for token in tokens]

    def stream(self, text: str) -> Stream:
        ids = [START, *self.encode(text), END]
        return Stream(np.asarray(ids, np.int32), token_widths(Tokenizer().tokenize(text)))

    def tables(self) -> WordTables:
        lengths = np.asarray([len(word) for word in self.words], np.int16)
        return WordTables(word_classes(self.words), lengths, self.words.index(JOIN))


def continued(source: str, prefix: str) -> str:
    """The text that follows the best match of `prefix` in `source`, renamed."""
    words = Vocabulary()
    stream, context = words.stream(source), words.encode(prefix)
    [found] = aligned_in_streams([stream], context, words.tables())
    tokens = [words.words[token] for token in found.tokens[0] if token != START]
    assert found.renamed[0].sum() <= len(tokens)
    widths = found.widths[0][: len(tokens)].tolist()
    assert sum(widths) == len(detokenize(tokens)) + (widths[0] - len(tokens[0]))
    return detokenize(tokens)


def test_names_opposite_each_other_are_renamed() -> None:
    source = "if user is None:\n    user = load(user)\nreturn user"
    assert continued(source, "if order is None:\n    ") == "order = load(order)\nreturn order"


def test_the_name_of_a_keyword_argument_stays() -> None:
    source = "data = read(path)\nsave(data=data)"
    assert continued(source, "rows = read(path)\n") == "save(data=rows)"


def test_the_nearest_pair_of_names_counts() -> None:
    source = "self.a = a\nself.b = b"
    assert continued(source, "self.x = x\nself.y =") == "y"


def test_a_match_ends_where_the_shapes_differ() -> None:
    words = Vocabulary()
    stream, context = words.stream("a = f(b)\nc"), words.encode("x + f(y)\n")
    position = np.asarray([len(stream.tokens) - 2], np.int32)
    found = Alignment.of(stream.tokens, position, context, word_classes(words.words))
    assert found.lengths.tolist() == [5]  # f ( y ) and the newline
    assert found.equal.tolist() == [4]
