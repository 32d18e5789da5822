"""Document frequencies: choose the words that several examples or projects use."""

from collections import Counter
from collections.abc import Collection
from typing import Any


class DocumentFrequencies:
    """Counts the examples that contain a word, and which words several projects use."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first_project: dict[str, Any] = {}
        self.shared: set[str] = set()
        self.projects: set[Any] = set()

    def count(self, words: Collection[str], project: Any) -> None:
        """Count each of the distinct `words` of one example once."""
        self.counts.update(words)
        self.projects.add(project)
        for word in words:
            if self.first_project.setdefault(word, project) != project:
                self.shared.add(word)

    def frequent(self, min_count: int, most: int) -> dict[str, int]:
        """Return the `most` words with the highest document frequency, and their frequencies.

        Words in fewer than `min_count` examples are left out, and words of a single project where
        there are several. Words of equal frequency are sorted by spelling.
        """
        shared = self.shared if len(self.projects) > 1 else self.counts
        ranked = sorted(self.counts.items(), key=lambda entry: (-entry[1], entry[0]))
        return dict(
            [(w, count) for w, count in ranked if count >= min_count and w in shared][:most]
        )
