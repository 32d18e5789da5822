"""Functions of the packages that are installed on this machine."""

from collections.abc import Sequence

from experiments.lib.installed import LONGEST, SHORTEST, installed_functions
from redraft.mining.python_functions import Source
from redraft.text.tokenizer import Tokenizer


def first_files(sources: Sequence[Source]) -> Sequence[Source]:
    """A few files of each of the first packages, and one file twice."""
    return [*sources[:60], *sources[:60]]


def test_every_body_is_mined_once_and_is_neither_too_short_nor_too_long() -> None:
    examples = installed_functions(first_files)
    assert examples
    bodies = [example.y for example in examples]
    assert len(bodies) == len(set(bodies))
    lengths = [len(Tokenizer().tokenize(body)) for body in bodies]
    assert SHORTEST <= min(lengths) <= max(lengths) <= LONGEST
    packages = [example.meta["package"] for example in examples]
    assert packages == sorted(packages)
    assert examples == installed_functions(first_files)


def test_large_packages_can_be_left_out() -> None:
    seen: list[Source] = []

    def watch(sources: Sequence[Source]) -> Sequence[Source]:
        seen.extend(sources)
        return []

    assert installed_functions(watch, most_files=20) == []
    counts: dict[str, int] = {}
    for source in seen:
        counts[source.package] = counts.get(source.package, 0) + 1
    assert max(counts.values()) <= 20
