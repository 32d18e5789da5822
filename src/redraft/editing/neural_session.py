"""Completion with the neural editor: one decoder step per new token of the prefix.

A prefix may end within a word. A completion then either continues that word or follows it; the
probabilities are conditioned on the text of the prefix, not on its tokenization.
"""

import math
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.editing.beam_search import SearchConfig, beam_search
from redraft.editing.editor_input import EditorInput
from redraft.editing.next_token import Mixture, MixtureState
from redraft.editing.session import CompletionSession, continuation, readable_prefix
from redraft.models.batch import CachePositions
from redraft.text.edit_encoder import LONGEST_OUTPUT, EditEncoder
from redraft.text.tokenizer import JOIN
from redraft.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, SPECIAL, UNK_ID
from redraft.types import Completion, Prototype

LONGEST_LINE = 20
"""The maximum number of tokens of a completion after its first."""

LEAST_LIKELY = math.log(0.6)
"""The minimum log-probability of the tokens after the first: a completion ends before the token
that falls below. On development functions 0.6 saved 32 % of the keystrokes, 0.2 saved 26 %."""

LETTER_LOG_PROB = math.log(1 / 20)
"""The log-probability of each letter of an OOV word: a partial word is rarely an OOV word."""

SUPPRESSED = (PAD_ID, UNK_ID, BOS_ID)
"""Tokens that are never generated."""

RESERVED_OOVS = 64
"""The number of OOV words of a prefix that get ids, beyond those of the sources."""

MIN_MATCH = 3
"""The n-gram length from which a cached output counts as the source of a token."""

_CACHE_SIZE = 16
"""The number of decoder states that are cached: enough to undo the last edits."""

_STRIDE = 100
"""Prefixes beyond the training length lose their first tokens in steps of this size."""


class Words:
    """The extended vocabulary of one input.

    `oovs` are the OOV words of its sources, followed by empty strings: the reserved ids, which are
    assigned to new OOV words of a prefix.
    """

    def __init__(self, encoding: EditEncoder, oovs: Sequence[str]) -> None:
        self.encoding = encoding
        self.oovs = list(oovs)
        self._size = len(encoding.vocabulary)
        self._source_ids = {word: self._size + i for i, word in enumerate(oovs) if word}
        self._ids = self._source_ids

    def encode(self, prefix: Sequence[str]) -> list[int]:
        """Return the ids of a prefix, and reassign the reserved ids to its OOV words."""
        self._ids = dict(self._source_ids)
        for token in prefix:
            if self.id_of(token) == UNK_ID and len(self._ids) < len(self.oovs):
                self.oovs[len(self._ids)] = token
                self._ids[token] = self._size + len(self._ids)
        return [self.id_of(token) for token in prefix]

    def id_of(self, token: str) -> int:
        """Return the id of a token, or the id of the unknown token if it has none."""
        return self._ids.get(token, self.encoding.vocabulary.id_of(token))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens of these ids."""
        return self.encoding.words(ids, self.oovs)

    def longer(self, token: str) -> list[int]:
        """Return the ids of all tokens of texts that begin with `token` and are longer."""
        words = self.encoding.vocabulary.alphabetical
        ids = []
        for i in range(bisect_left(words, (token,)), len(words)):
            if not words[i][0].startswith(token):
                break
            ids.append(words[i][1])
        ids += [oov for word, oov in self._ids.items() if word.startswith(token)]
        return [i for i in ids if self.tokens([i])[0] not in (token, JOIN, *SPECIAL)]


@dataclass(frozen=True)
class _Branch:
    """A tokenization of the prefix: its complete tokens, and the distribution after them."""

    complete: Sequence[str]
    state: MixtureState
    log_probs: Tensor  # (W,) of the next token; -inf if it contradicts the prefix


class NeuralSession(CompletionSession):
    """The next-token model of one input, with a cache of states after recent prefixes."""

    def __init__(
        self,
        next_tokens: Mixture,
        start: MixtureState,
        words: Words,
        editor_input: EditorInput,
    ) -> None:
        self.next_tokens = next_tokens
        self.words = words
        self.editor_input = editor_input
        self._nothing = start
        self._ranks: list[int] = CachePositions.pad(editor_input.edits[:1]).ranks[0].tolist()
        self._states: OrderedDict[tuple[int, ...], tuple[Tensor, MixtureState]] = OrderedDict()
        self._eos_ids = [EOS_ID, words.id_of("\n")]  # a completion ends with its line
        self._suppressed = torch.tensor(SUPPRESSED, dtype=torch.long, device=start.weights.device)

    @torch.inference_mode()
    def complete(self, prefix: str, k: int = 5) -> list[Completion]:
        """Return the `k` most probable next tokens, each with the probable rest of its line."""
        typed = readable_prefix(self.words.encoding.tokenize_output(prefix))
        branches = self._branches(typed)
        log_probs = torch.cat([branch.log_probs for branch in branches])
        best = log_probs.topk(min(k, len(log_probs)))
        chosen = best.indices[best.values > -torch.inf].tolist()
        size, texts = len(branches[0].log_probs), {}
        for i, branch in enumerate(branches):
            firsts = [index % size for index in chosen if index // size == i]
            for first, line in zip(firsts, self._lines(branch, firsts), strict=True):
                words = self.words.tokens(line)
                text = continuation(prefix, branch.complete, words)
                source = self._source(branch, first)
                texts[i * size + first] = "".join(words[:1]), text, source
        return [
            Completion(token, text, log_prob, source)
            for index, log_prob in zip(chosen, best.values.tolist(), strict=False)
            for token, text, source in [texts[index]]
        ]

    def _source(self, branch: _Branch, token: int) -> Prototype | None:
        """Return the example that a token comes from.

        This is the cached output with the longest n-gram match (the nearest in a tie) or, without a
        match of `MIN_MATCH` tokens, the first prototype of the group with the highest posterior.
        """
        cache, ranks = branch.state.cache, self._ranks
        matches = torch.where(cache.ids[0] == token, cache.matches[0], 0)[: len(ranks)]
        if len(matches) and matches.max() >= MIN_MATCH:
            return self.editor_input.cached[ranks[int(matches.argmax())]]
        best_group = int(branch.state.weights[0].argmax())
        return next(iter(self.editor_input.groups[best_group]), None)

    def _branches(self, typed: Sequence[str]) -> list[_Branch]:
        """Return the tokenizations of a prefix: its last word is complete, or part of another.

        The probabilities of all branches sum to one less that of the `SUPPRESSED` tokens: the next
        word may be one that can be neither generated nor copied.
        """
        dropped = max(0, -(-(len(typed) - LONGEST_OUTPUT) // _STRIDE) * _STRIDE)
        ids = self.words.encode(typed[dropped:])
        log_probs, state = self._after(ids)
        after = log_probs.index_fill(0, self._suppressed, -torch.inf)
        longer = self.words.longer(typed[-1]) if typed else []
        if not longer:
            return [_Branch(typed, state, after)]
        before, earlier = self._after(ids[:-1])
        # a word that can be neither generated nor copied: the unknown token, then its letters
        unknown = before[UNK_ID] + LETTER_LOG_PROB * len(typed[-1])
        by_id = before[ids[-1]] if ids[-1] != UNK_ID else unknown
        complete = torch.maximum(by_id, unknown)
        partial = torch.full_like(before, -torch.inf)
        partial[longer] = before[longer]
        total = torch.logaddexp(complete, partial.logsumexp(0))
        return [
            _Branch(typed, state, after + complete - total),
            _Branch(typed[:-1], earlier, partial - total),
        ]

    def _after(self, ids: Sequence[int]) -> tuple[Tensor, MixtureState]:
        """Return the log-probabilities (W,) after these ids, and the state.

        Decodes only the ids after the longest prefix whose state is cached.
        """
        prefix = (BOS_ID, *ids)
        if prefix not in self._states:
            parts = (prefix[:end] for end in range(len(prefix) - 1, 0, -1))  # longest first
            cached = next((part for part in parts if part in self._states), ())
            state = self._states[cached][1] if cached else self._nothing
            new = torch.tensor([prefix[len(cached) :]], device=state.weights.device)
            log_probs, state = self.next_tokens.step(state, new)
            self._states[prefix] = log_probs[0], state
        self._states.move_to_end(prefix)
        while len(self._states) > _CACHE_SIZE:
            self._states.popitem(last=False)
        return self._states[prefix]

    def _lines(self, branch: _Branch, firsts: Sequence[int]) -> list[list[int]]:
        """Decode the probable rest of the line after each first token, greedily.

        Returns the ids from the first token on, without the end token.
        """
        open_ended = [first for first in firsts if first not in self._eos_ids]
        lines = {first: [first] * (first != EOS_ID) for first in firsts}
        if open_ended:
            bos = torch.tensor(open_ended, device=branch.log_probs.device)
            results = beam_search(
                self.next_tokens,
                self.next_tokens.reorder(branch.state, torch.zeros_like(bos)),
                SearchConfig(1, LONGEST_LINE, min_log_prob=LEAST_LIKELY),
                bos=bos,
                eos_ids=self._eos_ids,
                suppressed=SUPPRESSED,
            )
            for token, hypotheses in zip(open_ended, results, strict=True):
                for best in hypotheses[:1]:
                    is_likely = best.log_prob >= LEAST_LIKELY
                    rest = best.tokens if is_likely else best.tokens[:-1]
                    lines[token] = [token, *(i for i in rest if i != EOS_ID)]
        return [lines[first] for first in firsts]
