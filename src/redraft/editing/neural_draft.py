"""A draft that learned: what follows any prefix of an output, at one step for a new token.

A prefix is a text and may end within a word. What follows is then either more of that word or
what comes after it; the probabilities are those of all texts that begin with the prefix.
"""

import math
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.data.edit_numbers import LONGEST_OUTPUT, EditNumbering
from redraft.data.vocabulary import (
    END_NUMBER,
    PAD_NUMBER,
    START_NUMBER,
    UNKNOWN_NUMBER,
)
from redraft.editing.beam_search import SearchConfig, beam_search
from redraft.editing.completion import Completion, continuation, readable_prefix
from redraft.editing.draft import Draft
from redraft.editing.mixture import Mixture, MixtureState
from redraft.editing.question import Question
from redraft.retrieval.prototype import Prototype

LONGEST_LINE = 20
"""Tokens that a completion has at most after its first."""

LEAST_LIKELY = math.log(0.6)
"""How likely the tokens after the first must be, together: a completion ends before the one that
makes it less likely. On held-out functions of dev this saved 32 % of the keys, 0.2 saved 26 %."""

A_LETTER = math.log(1 / 20)
"""The chance of each letter of a word that is not known: half a known word is rarely all of it."""

BARRED = (PAD_NUMBER, UNKNOWN_NUMBER, START_NUMBER)
"""Tokens that are never produced."""

SPARE = 64
"""Words of the output that no source has and that are told from one another."""

TELLING = 3
"""Words that must agree before a place for its output to count as the source."""

_KEPT = 16
"""States that are kept: enough to take back what was typed last."""

_STRIDE = 100
"""Of an output that is longer than any in training the beginning is forgotten in such steps."""


class Words:
    """The words of one question by their numbers: the vocabulary's, and those it lacks.

    The numbers of empty words, which come last, are free for the new ones of a prefix.
    """

    def __init__(self, numbering: EditNumbering, unknown: Sequence[str]) -> None:
        self.numbering = numbering
        self.unknown = list(unknown)
        self._size = len(numbering.vocabulary)
        self._given = {word: self._size + at for at, word in enumerate(unknown) if word}
        self._own = self._given

    def read(self, prefix: Sequence[str]) -> list[int]:
        """The numbers of a prefix; those that new words of an earlier one had are free again."""
        self._own = dict(self._given)
        for token in prefix:
            if self.number(token) == UNKNOWN_NUMBER and len(self._own) < len(self.unknown):
                self.unknown[len(self._own)] = token
                self._own[token] = self._size + len(self._own)
        return [self.number(token) for token in prefix]

    def number(self, token: str) -> int:
        """The number of a token; that of the unknown token if it has none."""
        return self._own.get(token, self.numbering.vocabulary.number(token))

    def tokens(self, numbers: Sequence[int]) -> list[str]:
        """The tokens with these numbers."""
        return self.numbering.words(numbers, self.unknown)

    def longer(self, token: str) -> list[int]:
        """The numbers of all words that begin with the token and go on."""
        ranked = self.numbering.vocabulary.alphabetical
        found = []
        for at in range(bisect_left(ranked, (token,)), len(ranked)):
            if not ranked[at][0].startswith(token):
                break
            found.append(ranked[at][1])
        found += [number for word, number in self._own.items() if word.startswith(token)]
        return [number for number in found if self.tokens([number]) != [token]]


@dataclass(frozen=True)
class _Branch:
    """A reading of the prefix: the tokens that are settled, and what may follow them."""

    settled: Sequence[str]
    state: MixtureState
    log_probs: Tensor  # (W,) of the next token given the prefix, -inf for what contradicts it

    @property
    def likeliest(self) -> int:
        """The group of prototypes that weighs most after what was read."""
        return int(self.state.weights[0].argmax())


class NeuralDraft(Draft):
    """The walk of one question; the states after its last prefixes are kept."""

    def __init__(
        self,
        walk: Mixture,
        start: MixtureState,
        words: Words,
        question: Question,
    ) -> None:
        self.walk = walk
        self.words = words
        self.question = question
        self._nothing = start
        self._owners: list[int] = words.numbering.places(question.edits[:1]).ranks[0].tolist()
        self._read: OrderedDict[tuple[int, ...], tuple[Tensor, MixtureState]] = OrderedDict()
        self._stops = [END_NUMBER, words.number("\n")]
        self._barred = torch.tensor(BARRED, device=start.weights.device)

    @torch.inference_mode()
    def complete(self, prefix: str, k: int = 5) -> list[Completion]:
        """The k likeliest next tokens, each with what is likely to follow in its line."""
        typed = readable_prefix(self.words.numbering.tokenize_output(prefix))
        branches = self._branches(typed)
        chances = torch.cat([branch.log_probs for branch in branches])
        best = chances.topk(min(k, len(chances)))
        chosen = best.indices[best.values > -torch.inf].tolist()
        width, texts = len(branches[0].log_probs), {}
        for at, branch in enumerate(branches):
            firsts = [each % width for each in chosen if each // width == at]
            for first, line in zip(firsts, self._lines(branch, firsts), strict=True):
                words = self.words.tokens(line)
                text = continuation(prefix, branch.settled, words)
                source = self._source(branch, first)
                texts[at * width + first] = "".join(words[:1]), text, source
        return [
            Completion(token, text, log_prob, source)
            for each, log_prob in zip(chosen, best.values.tolist(), strict=False)
            for token, text, source in [texts[each]]
        ]

    def _source(self, branch: _Branch, token: int) -> Prototype | None:
        """The example that a token comes from: where its context is found again, or that is read.

        Of the cached outputs the one with the longest match counts, the nearest of equals.
        """
        cache, owners = branch.state.cache, self._owners
        matches = torch.where(cache.ids[0] == token, cache.matches[0], 0)[: len(owners)]
        if len(matches) and matches.max() >= TELLING:
            return self.question.cached[owners[int(matches.argmax())]]
        return next(iter(self.question.groups[branch.likeliest]), None)

    def _branches(self, typed: Sequence[str]) -> list[_Branch]:
        """The last word is whole, or the beginning of a longer one: the chances sum to one."""
        forgotten = max(0, -(-(len(typed) - LONGEST_OUTPUT) // _STRIDE) * _STRIDE)
        numbers = self.words.read(typed[forgotten:])
        log_probs, state = self._after(numbers)
        after = log_probs.index_fill(0, self._barred, -torch.inf)
        longer = self.words.longer(typed[-1]) if typed else []
        if not longer:
            return [_Branch(typed, state, after)]
        before, earlier = self._after(numbers[:-1])
        # a word that can be neither written nor copied is the unknown token, letter by letter
        unknown = before[UNKNOWN_NUMBER] + A_LETTER * len(typed[-1])
        known = before[numbers[-1]] if numbers[-1] != UNKNOWN_NUMBER else unknown
        whole = torch.maximum(known, unknown)
        within = torch.full_like(before, -torch.inf)
        within[longer] = before[longer]
        total = torch.logaddexp(whole, within.logsumexp(0))
        return [
            _Branch(typed, state, after + whole - total),
            _Branch(typed[:-1], earlier, within - total),
        ]

    def _after(self, numbers: Sequence[int]) -> tuple[Tensor, MixtureState]:
        """Log-probabilities (W,) of the token after these, and the state: what is new is read."""
        read = (START_NUMBER, *numbers)
        if read not in self._read:
            known = next((each for each in _beginnings(read) if each in self._read), ())
            state = self._read[known][1] if known else self._nothing
            new = torch.tensor([read[len(known) :]], device=state.weights.device)
            log_probs, state = self.walk.advance(state, new)
            self._read[read] = log_probs[0], state
        self._read.move_to_end(read)
        while len(self._read) > _KEPT:
            self._read.popitem(last=False)
        return self._read[read]

    def _lines(self, branch: _Branch, firsts: Sequence[int]) -> list[list[int]]:
        """The line after each first token as far as it is likely, itself included, no end."""
        end = self._stops[0]
        open_ended = [each for each in firsts if each not in self._stops]
        lines = {each: [each] * (each != end) for each in firsts}
        if open_ended:
            first = torch.tensor(open_ended, device=branch.log_probs.device)
            found = beam_search(
                self.walk,
                self.walk.select(branch.state, torch.zeros_like(first)),
                SearchConfig(1, LONGEST_LINE, floor=LEAST_LIKELY),
                first=first,
                stops=self._stops,
                barred=self._barred.tolist(),
            )
            for token, hypotheses in zip(open_ended, found, strict=True):
                for best in hypotheses[:1]:
                    is_likely = best.log_prob >= LEAST_LIKELY
                    rest = best.tokens if is_likely else best.tokens[:-1]
                    lines[token] = [token, *(each for each in rest if each != end)]
        return [lines[each] for each in firsts]


def _beginnings(numbers: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The numbers without their last, without their last two, and so on."""
    return (numbers[:end] for end in range(len(numbers) - 1, 0, -1))
