"""Check a file of pairs for bad rows, duplicates, and leaks from another file.

Streams the rows: only hashes and line numbers are kept in memory.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from redraft.data.rows import BadRow
from redraft.text.tokenizer import Tokenizer
from redraft.types import Example, input_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEAR = 0.8
"""Examples with at least this Jaccard similarity of token trigrams are near-duplicates."""

PERMUTATIONS = 128
"""Length of a MinHash signature."""


@dataclass(frozen=True)
class Finding:
    """A duplicate or leak: the line of a row, and of the row that it repeats."""

    kind: Literal["duplicate", "conflict", "leak", "near leak"]
    line: int
    other: int
    detail: str


@dataclass
class Tally:
    """Counts of rows, bad rows and findings by kind."""

    rows: int = 0
    bad: int = 0
    findings: dict[str, int] = field(default_factory=dict)

    def count(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Count the findings and yield them."""
        for finding in findings:
            self.findings[finding.kind] = self.findings.get(finding.kind, 0) + 1
            yield finding

    def to_json(self) -> dict[str, Any]:
        """Return the counts as one JSON object."""
        return {"rows": self.rows, "good": self.rows - self.bad, "bad": self.bad, **self.findings}


def _digests(example: Example) -> dict[str, int]:
    """Return 64-bit hashes (of this process) of pair, input and output, in that order."""
    fields = tuple(sorted(example.x.items()))
    return {
        "input and output": hash((fields, example.y)),
        "input": hash(fields),
        "output": hash(example.y),
    }


class DuplicateFinder:
    """Collects 24 bytes per row, then reports repeated rows and conflicting outputs."""

    def __init__(self) -> None:
        self._inputs, self._pairs, self._lines = array("q"), array("q"), array("q")

    def add(self, line: int, example: Example) -> None:
        """Add an example with its line."""
        digests = _digests(example)
        self._lines.append(line)
        self._inputs.append(digests["input"])
        self._pairs.append(digests["input and output"])

    def findings(self) -> Iterator[Finding]:
        """Yield rows that repeat an earlier row, or give another output for its input."""
        import numpy as np

        rows, lines = np.arange(len(self._lines)), self._lines
        first_pair = _first_with_same(np.asarray(self._pairs))
        repeats = first_pair != rows
        for row in np.flatnonzero(repeats):
            yield Finding("duplicate", lines[row], lines[first_pair[row]], "same input and output")
        first_input = _first_with_same(np.asarray(self._inputs))
        for row in np.flatnonzero(~repeats & (first_input != rows)):
            detail = "same input, another output"
            yield Finding("conflict", lines[row], lines[first_input[row]], detail)


def _first_with_same(digests: "NDArray[np.int64]") -> "NDArray[np.intp]":
    """Return for each position the first position with the same digest."""
    import numpy as np

    _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
    return first[inverse]


class LeakFinder:
    """Finds examples of another file that occur in this set, exactly or nearly.

    Near leaks are checked against the first examples only: MinHash signatures need memory.
    """

    def __init__(self, examples: Iterable[tuple[int, Example]]) -> None:
        from datasketch import MinHashLSH

        from redraft.storage import disk

        self._exact: dict[str, dict[int, int]] = defaultdict(dict)
        self._near = MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS)
        self._signatures: dict[int, Any] = {}
        self.count = 0
        for self.count, (line, example) in enumerate(examples, start=1):
            for kind, digest in _digests(example).items():
                self._exact[kind].setdefault(digest, line)
            if self.count <= disk.IN_MEMORY_LIMIT:
                self._signatures[line] = _signature(example)
                self._near.insert(line, self._signatures[line])

    @property
    def compared(self) -> int:
        """The number of examples that near leaks are checked against."""
        return len(self._signatures)

    def findings(self, line: int, example: Example) -> Iterator[Finding]:
        """Yield the leak of an example, if any: same pair, same input or output, or nearly."""
        for kind, digest in _digests(example).items():
            if digest in self._exact[kind]:
                yield Finding("leak", line, self._exact[kind][digest], f"same {kind}")
                return
        signature = _signature(example)
        similar = {
            other: signature.jaccard(self._signatures[other])
            for other in self._near.query(signature)
        }
        other = max(similar, key=lambda other: (similar[other], -other), default=line)
        if similar.get(other, 0.0) >= NEAR:
            yield Finding("near leak", line, other, f"about {similar[other]:.0%} the same")


def _signature(example: Example) -> Any:
    return signature_of(f"{input_text(example.x)}\n{example.y}")


def signature_of(text: str) -> Any:
    """Return the MinHash signature of the token trigrams of a text."""
    from datasketch import MinHash

    tokens = Tokenizer().tokenize(text)
    trigrams = {
        "\0".join(tokens[i : i + 3]).encode(errors="surrogatepass")
        for i in range(max(1, len(tokens) - 2))
    }
    signature = MinHash(num_perm=PERMUTATIONS, seed=1)
    signature.update_batch(sorted(trigrams))
    return signature


def check(
    outcomes: Iterable[tuple[int, Example | BadRow]],
    tally: Tally,
    *,
    against: LeakFinder | None = None,
) -> Iterator[BadRow | Finding]:
    """Yield bad rows and findings of numbered rows, and count them in `tally`."""
    duplicates = DuplicateFinder()
    for line, outcome in outcomes:
        tally.rows += 1
        if isinstance(outcome, BadRow):
            tally.bad += 1
            yield outcome
            continue
        duplicates.add(line, outcome)
        if against is not None:
            yield from tally.count(against.findings(line, outcome))
    yield from tally.count(duplicates.findings())
