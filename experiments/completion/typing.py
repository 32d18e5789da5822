"""Types functions token by token: the keys that suggestions save, and the paper's lengths.

The user sees the first suggestion between two tokens and accepts it with one key if it is right. A
newline is a key, indentation is none.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from experiments.completion.measurement import BARE, REDRAFT, Suggestion, bare_prototype
from experiments.completion.projects import Asked, CutProject, buffer_of, is_right
from redraft.completion.engine import CompletionEngine
from redraft.completion.project_session import ProjectSession
from redraft.metrics.completion import Ranks, completion_metrics
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.text.tokenizer import Tokenizer, spell

NEVER = 1_000_000
"""The rank of a token that is not among the suggestions."""


@dataclass(frozen=True)
class TypedFunction:
    """The keys of a function and those that were pressed; the paper's lengths, if measured."""

    package: str
    system: str
    characters: int
    keys: int
    lengths: dict[str, float]

    @property
    def keys_saved(self) -> float:
        """Return the characters that took no key, per cent."""
        return 100 * (1 - self.keys / self.characters) if self.characters else 0.0


def typed(project: CutProject, engine: CompletionEngine) -> Iterator[TypedFunction]:
    """Type every asked function with the engine and with the bare prototype."""
    retriever = Bm25Retriever.build(list(engine.model.retriever.examples))
    for asked in project.asked:
        text = project.files[asked.file]

        def suggest(prefix: str, asked: Asked = asked, text: str = text) -> Suggestion:
            buffer, offset = buffer_of(text, asked, prefix)
            found = engine.complete(buffer, offset, 1, file=asked.file)
            inserted = found[0].text.replace("\n" + asked.indentation, "\n") if found else ""
            return Suggestion(inserted)

        def copy(prefix: str, asked: Asked = asked) -> Suggestion:
            return bare_prototype(retriever, asked, prefix)

        characters, keys = replay(asked.example.y, suggest)
        buffer, offset = buffer_of(text, asked, "")
        session = engine.session(asked.example.x, asked.file, text=buffer, offset=offset)
        assert isinstance(session, ProjectSession)
        ranks = next_token_ranks(session, asked.example.y)
        lengths = {name: values[0] for name, values in completion_metrics([ranks]).items()}
        yield TypedFunction(project.name, REDRAFT, characters, keys, lengths)
        yield TypedFunction(project.name, BARE, *replay(asked.example.y, copy), {})


def replay(body: str, suggest: Callable[[str], Suggestion]) -> tuple[int, int]:
    """Return the characters of a body without indentation, and the keys that typing it takes."""
    texts = spell(Tokenizer().tokenize(body))
    starts = np.cumsum([0, *map(len, texts)]).tolist()
    keys = place = 0
    for i, text in enumerate(texts):
        if starts[i] < place or not text or _is_indentation(texts, i):
            continue
        suggestion = suggest(body[: starts[i]]).text
        rest = body[starts[i] :]
        if len(suggestion.strip()) > 1 and is_right(suggestion, rest):
            space = len(rest) - len(rest.lstrip())
            place = starts[i] + space + len(suggestion.strip())
            keys += 1
        else:
            keys += len(text)
    indentation = sum(len(text) for i, text in enumerate(texts) if _is_indentation(texts, i))
    return len(body) - indentation, keys


def _is_indentation(texts: list[str], i: int) -> bool:
    return texts[i].isspace() and texts[i] != "\n" and (i == 0 or texts[i - 1] == "\n")


def next_token_ranks(session: ProjectSession, body: str) -> Ranks:
    """Return the rank of each true token among the first tokens of all continuations.

    A token is as probable as its most probable continuation.
    """
    tokens = Tokenizer().tokenize(body)
    ranks = np.full(len(tokens), NEVER)
    session.read_after("")
    for i, truth in enumerate(tokens):
        ranked = session.rank(tokens[:i])
        if ranked is None:
            continue
        found = ranked.continuations
        order = np.argsort(-ranked.probability, kind="stable")
        firsts = found.occurrences.tokens[found.first[order], 0].tolist()
        words = [session.words[token] for token in dict.fromkeys(firsts)]
        if truth in words:
            ranks[i] = words.index(truth)
    return ranks
