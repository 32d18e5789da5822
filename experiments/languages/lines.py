"""The line after line 1 of functions whose bodies were cut out of the index."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rapidfuzz.distance import Levenshtein

from experiments.completion.projects import is_right
from redraft.completion.context_tables import END
from redraft.completion.engine import CompletionEngine
from redraft.completion.languages.trees.functions import body_of, first_indentation, indentation_of
from redraft.completion.languages.trees.grammar import FunctionNode
from redraft.completion.languages.trees.language import TreeLanguage
from redraft.completion.ngram_index import NgramIndex
from redraft.completion.project import Project, empty_model, index_project
from redraft.text.tokenizer import Tokenizer, detokenize

LONG = 10
"""Characters from which a right suggestion counts."""


@dataclass(frozen=True)
class LineAnswer:
    """The first line that a system suggests, "" for none, and the line of the file."""

    package: str
    system: str
    text: str
    truth: str
    milliseconds: float

    @property
    def is_exact(self) -> bool:
        """True if the whole line is right."""
        return self.text == self.truth

    @property
    def similarity(self) -> float:
        """The edit similarity of the lines."""
        return float(Levenshtein.normalized_similarity(self.text, self.truth)) if self.text else 0.0

    @property
    def is_begun_right(self) -> bool:
        """True if the line begins with the suggestion, as whole tokens, of ten characters."""
        return len(self.text) >= min(LONG, len(self.truth)) and is_right(self.text, self.truth)


@dataclass(frozen=True)
class Cut:
    """A function to ask for: its file, the offset behind its brace, and its body."""

    file: str
    start: int
    end: int
    indentation: str
    body: str


def choose(
    sources: dict[str, str], language: TreeLanguage, count: int, rng: random.Random
) -> list[Cut]:
    """Return functions of 4 to 60 lines that do not overlap, in random order."""
    cuts = [
        cut
        for file, text in sources.items()
        if (parsed := language.grammar.parse(text.encode())) is not None
        for function in language.grammar.functions(parsed)
        if (cut := _cut(file, text, function)) is not None
    ]
    rng.shuffle(cuts)
    chosen: list[Cut] = []
    for cut in cuts:
        others = (other for other in chosen if other.file == cut.file)
        if not any(cut.start <= other.end and other.start <= cut.end for other in others):
            chosen.append(cut)
    return chosen[:count]


def _cut(file: str, text: str, function: FunctionNode) -> Cut | None:
    content = text.encode()
    start = len(content[: function.body.start_byte].decode()) + 1
    end = len(content[: function.body.end_byte].decode()) - 1
    indentation = first_indentation(text[start:end])
    body = body_of(function)
    lines = body.split("\n")
    is_asked = 4 <= len(lines) <= 60 and bool(lines[1].strip()) and not text[start:].find("\n")
    return Cut(file, start, end, indentation or "", body) if is_asked else None


def measure_lines(
    package: str, sources: dict[str, str], language: TreeLanguage, count: int, rng: random.Random
) -> Iterator[LineAnswer]:
    """Yield the answers of the product and of the n-gram index alone."""
    cuts = choose(sources, language, count, rng)
    files = dict(sources)
    for cut in sorted(cuts, key=lambda cut: -cut.start):
        files[cut.file] = files[cut.file][: cut.start] + files[cut.file][cut.end :]
    engine = CompletionEngine(index_project(empty_model(), _project(files))[0])
    engine.prepare()
    for cut in cuts:
        first, truth = cut.body.split("\n")[:2]
        text, offset = _buffer(sources, cuts, cut, first, truth)
        begun = time.process_time()
        found = engine.complete(text, offset, 1, file=cut.file)
        seconds = time.process_time() - begun
        shown = found[0].text.strip().split("\n")[0] if found else ""
        yield LineAnswer(package, "redraft", shown, truth.strip(), 1000 * seconds)
        begun = time.process_time()
        line = ngram_line(engine.index_of(language.family), first + "\n")
        seconds = time.process_time() - begun
        yield LineAnswer(package, "n-gram cache", line, truth.strip(), 1000 * seconds)


def _project(files: dict[str, str]) -> Project:
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Project.read([Path(folder)])


def _buffer(
    sources: dict[str, str], cuts: Sequence[Cut], cut: Cut, first: str, truth: str
) -> tuple[str, int]:
    """Return the file with line 1 of a body typed and the other asked bodies cut out."""
    text, start, end = sources[cut.file], cut.start, cut.end
    for other in sorted(cuts, key=lambda one: -one.start):
        if other.file == cut.file and other is not cut:
            text = text[: other.start] + text[other.end :]
            if other.start < cut.start:
                start -= other.end - other.start
                end -= other.end - other.start
    typed = f"\n{cut.indentation}{first}\n{cut.indentation}{indentation_of(truth)}"
    closed = text[end:]
    return f"{text[:start]}{typed}\n{closed}", start + len(typed)


def ngram_line(index: NgramIndex, prefix: str) -> str:
    """Return the most frequent line after the longest match of a prefix in the index."""
    context = [index.ids.get(token, -1) for token in Tokenizer().tokenize(prefix)]
    matches = index.contexts.matches(context)
    if not matches:
        return ""
    lines: Counter[str] = Counter()
    for position in matches[-1][:1000].tolist():
        tokens: list[str] = []
        for token in index.tokens[position : position + 200].tolist():
            if token == END or (index.words[token] == "\n" and tokens):
                break
            tokens.append(index.words[token])
        lines[detokenize(tokens).strip()] += 1
    return lines.most_common(1)[0][0]
