"""Trained peers at the same cursors: networks with an n-gram cache over the project.

They train on the functions of the train packages, as in `experiments/autocomplete`, and are asked
in process: each predicts the next token and the rest of its line.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from experiments.autocomplete.bench import SIZES, CompletionBench
from experiments.autocomplete.run import with_classic_cache
from experiments.autocomplete.settings import RETRIEVED, Functions
from experiments.completion.measurement import LONG
from experiments.completion.projects import CutProject, cursors, indexed_model
from experiments.completion.recorded import Recorded
from redraft.completion.languages.base import kind_of
from redraft.editing.neural import NeuralEditor
from redraft.editing.session import CompletionSession
from redraft.retrieval.base import NoRetriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.training.fit import FitOptions

MAX_TEXT = 100
"""Characters after which a suggestion of white space is given up."""

SEQ2SEQ, NETWORK = "seq2seq + cache", "retrieve+edit network"


def recorded(
    editor: NeuralEditor, projects: Sequence[CutProject], rng: random.Random
) -> Iterator[Recorded]:
    """Yield the first completion of an editor at every cursor; all other functions are known."""
    for project in projects:
        examples = indexed_model(project).retriever.examples
        functions = [one for one in examples if kind_of(one.x) == "function"]
        retriever = Bm25Retriever.build(functions)
        for asked in project.asked:
            x = asked.example.x
            found = retriever.retrieve([x], RETRIEVED)[0]
            session = editor.start_session(x, [one for one in found if one.example.x != x])
            for cursor in cursors(asked.example.y, rng):
                start = time.perf_counter()
                text, source = continued(session, cursor.prefix)
                elapsed = round(1000 * (time.perf_counter() - start), 1)
                yield Recorded(text, elapsed, source)


def continued(session: CompletionSession, prefix: str) -> tuple[str, str | None]:
    """Return the first completion and its source, continued until it has `LONG` characters.

    Alone it ends where the next token is improbable, mostly before ten characters.
    """
    text, source = "", None
    while len(text.strip()) < LONG and len(text) < MAX_TEXT:
        first = next(iter(session.complete(prefix + text, 1)), None)
        if first is None or not first.text:
            break
        if not text.strip() and first.prototype:
            source = first.prototype.example.y
        text += first.text
    return text, source


def trained_peers(corpus: Path, runs: Path, seed: int) -> Iterator[tuple[str, NeuralEditor]]:
    """Yield the peers by name, trained on the functions of a corpus; training resumes in `runs`."""
    strict, paper = (Functions.read(corpus / rule) for rule in ("strict", "paper"))
    bench = CompletionBench(strict, paper, SIZES["small"], FitOptions(seed=seed), runs)
    makers: dict[str, Callable[[], NeuralEditor]] = {
        SEQ2SEQ: lambda: _seq2seq(bench),
        NETWORK: lambda: _network(bench),
    }
    for name, make in makers.items():
        yield name, make()


def _seq2seq(bench: CompletionBench) -> NeuralEditor:
    editor, _ = bench.editor("seq2seq", NoRetriever(bench.strict.train))
    return with_classic_cache(bench, editor)


def _network(bench: CompletionBench) -> NeuralEditor:
    editor, _ = bench.editor("retrieve+edit", Bm25Retriever.build(bench.strict.train))
    return editor.with_cache(bench.fit_cache(editor))
