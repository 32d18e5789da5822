"""What is wrong with a file of pairs: bad rows, duplicates, and leaks from another file.

Streams: a row costs its hashes and its line number, never its text.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from redraft.data.example import Example, input_text
from redraft.data.rows import BadRow
from redraft.data.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEAR = 0.8
"""From this Jaccard similarity of token trigrams on, two examples count as nearly the same."""

_PERMUTATIONS = 128


@dataclass(frozen=True)
class Finding:
    """Something to look at: the line of a row, and of the earlier or other row it resembles."""

    kind: Literal["duplicate", "conflict", "leak", "near leak"]
    line: int
    other: int
    detail: str


@dataclass
class Tally:
    """How many rows of each kind a check has met."""

    rows: int = 0
    bad: int = 0
    found: dict[str, int] = field(default_factory=dict)

    def count(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Pass the findings on, counted."""
        for finding in findings:
            self.found[finding.kind] = self.found.get(finding.kind, 0) + 1
            yield finding

    def to_json(self) -> dict[str, Any]:
        """The tally as one JSON object."""
        return {"rows": self.rows, "good": self.rows - self.bad, "bad": self.bad, **self.found}


def _digests(example: Example) -> dict[str, int]:
    """What two examples can share, the most telling first, as 64-bit hashes of this process."""
    fields = tuple(sorted(example.x.items()))
    return {
        "input and output": hash((fields, example.y)),
        "input": hash(fields),
        "output": hash(example.y),
    }


class DuplicateFinder:
    """Collects 24 bytes a row; then names every pair of equal rows, or of equal inputs."""

    def __init__(self) -> None:
        self._inputs, self._pairs, self._lines = array("q"), array("q"), array("q")

    def add(self, line: int, example: Example) -> None:
        """Remember an example by its line."""
        digests = _digests(example)
        self._lines.append(line)
        self._inputs.append(digests["input"])
        self._pairs.append(digests["input and output"])

    def findings(self) -> Iterator[Finding]:
        """Rows that repeat an earlier row, or give another output for an earlier input."""
        import numpy as np

        inputs, pairs = np.asarray(self._inputs), np.asarray(self._pairs)
        first_pair = _first_with_same(pairs)
        repeats = first_pair != np.arange(len(pairs))
        for at in np.flatnonzero(repeats):
            yield self._finding("duplicate", int(at), int(first_pair[at]), "same input and output")
        first_input = _first_with_same(inputs)
        conflicts = ~repeats & (first_input != np.arange(len(inputs)))
        for at in np.flatnonzero(conflicts):
            detail = "same input, another output"
            yield self._finding("conflict", int(at), int(first_input[at]), detail)

    def _finding(
        self, kind: Literal["duplicate", "conflict"], at: int, other: int, detail: str
    ) -> Finding:
        return Finding(kind, self._lines[at], self._lines[other], detail)


def _first_with_same(digests: "NDArray[np.int64]") -> "NDArray[np.intp]":
    """For each position, the first position with the same digest."""
    import numpy as np

    _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
    return first[inverse]


class LeakFinder:
    """Holds one set of examples; names those of another that it holds too, exactly or nearly.

    Nearly the same is looked for among the first of many: the rest would not fit into memory.
    """

    def __init__(self, examples: Iterable[tuple[int, Example]]) -> None:
        from datasketch import MinHashLSH

        from redraft.data import filed

        self._exact: dict[str, dict[int, int]] = defaultdict(dict)
        self._near = MinHashLSH(threshold=NEAR, num_perm=_PERMUTATIONS)
        self._signatures: dict[int, Any] = {}
        self.count = 0
        for self.count, (line, example) in enumerate(examples, start=1):
            for kind, digest in _digests(example).items():
                self._exact[kind].setdefault(digest, line)
            if self.count <= filed.MANY:
                self._signatures[line] = _signature(example)
                self._near.insert(line, self._signatures[line])

    @property
    def compared(self) -> int:
        """How many examples the near leaks are looked for among."""
        return len(self._signatures)

    def findings(self, line: int, example: Example) -> Iterator[Finding]:
        """How this example stands in the set, if it does: by both sides, by one, or nearly."""
        for kind, digest in _digests(example).items():
            if digest in self._exact[kind]:
                yield Finding("leak", line, self._exact[kind][digest], f"same {kind}")
                return
        yield from self._near_findings(line, example)

    def _near_findings(self, line: int, example: Example) -> Iterator[Finding]:
        signature = _signature(example)
        similar = {
            other: signature.jaccard(self._signatures[other])
            for other in self._near.query(signature)
        }
        if similar:
            other = max(similar, key=lambda other: (similar[other], -other))
            if similar[other] >= NEAR:
                yield Finding("near leak", line, other, f"about {similar[other]:.0%} the same")


def _signature(example: Example) -> Any:
    from datasketch import MinHash

    tokens = Tokenizer().tokenize(f"{input_text(example.x)}\n{example.y}")
    trigrams = {
        "\0".join(tokens[at : at + 3]).encode(errors="surrogatepass")
        for at in range(max(1, len(tokens) - 2))
    }
    signature = MinHash(num_perm=_PERMUTATIONS, seed=1)
    signature.update_batch(sorted(trigrams))
    return signature


def check(
    outcomes: Iterable[tuple[int, Example | BadRow]],
    tally: Tally,
    *,
    against: LeakFinder | None = None,
) -> Iterator[BadRow | Finding]:
    """Everything worth reporting of numbered rows, as it is found; counts it in `tally`."""
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
