"""Completion with a language model: generates at the cursor in the background.

The instant suggestions do not wait for it. What it generates is kept and shortened while the typed
text agrees with it; as soon as it does not, the connection is closed, which stops the server, and
the next generation begins. Knows no protocol of editors; logs neither code nor prompts.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from redraft.completion.engine import CompletionEngine
from redraft.completion.generated_text import (
    MAX_TOKENS,
    GeneratedEnd,
    generated_ends,
    is_enough,
)
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.languages.registry import language_of
from redraft.completion.lm_prompt import CursorText, cursor_prompt
from redraft.completion.mixing import starter_mixture
from redraft.config.ranges import Range, check_ranges
from redraft.errors import LmError
from redraft.lm.fim import fim_template
from redraft.lm.stream import LmPiece
from redraft.types import Completion, Prototype

if TYPE_CHECKING:
    from redraft.lm.client import LmClient
    from redraft.lm.stream import LmAnswer

DELAY = 0.06
"""Seconds without typing before a request is sent."""

GRACE = 0.3
"""Seconds that a generation goes on after its request was cancelled, as by a keystroke."""

MAX_FILES = 4
"""Files with a generation at a time."""

RETRY = 30.0
"""Seconds after which an endpoint that did not answer is asked for its models again."""

Similar = Callable[[], Sequence[Prototype]]
"""Returns the functions to show, the most similar first; called only if a prompt is built."""


@dataclass(frozen=True)
class LmCompletionSettings:
    """How a language model is asked: its name, retrieved functions and tokens of a prompt."""

    model: str | None = None
    shots: Annotated[int, Range(0, 100)] = 3
    context: Annotated[int, Range(256, 1_000_000)] = 2048

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass
class LmGeneration:
    """A generation at a cursor; `shown` are the functions in its prompt."""

    start: CursorText
    shown: Sequence[Prototype]
    pieces: Sequence[LmPiece] = ()
    future: "Future[LmAnswer]" = field(default_factory=Future)
    uses: int = 0

    def ends(self, cursor: CursorText) -> list[GeneratedEnd]:
        """Return where the generated text may end after the cursor; empty until a line is ready."""
        rest = self._after(cursor)
        if not rest:
            return []
        is_ready = self.is_done or "\n" in "".join(piece.text for piece in rest).lstrip()
        return generated_ends(cursor, rest) if is_ready else []

    def serves(self, cursor: CursorText) -> bool:
        """Return True if what was typed since agrees with the generation, as far as it is known."""
        return self._after(cursor) is not None

    @property
    def is_done(self) -> bool:
        """True if the generation has ended, in whatever way."""
        return self.future.done()

    def cancel(self) -> None:
        """Stop the generation."""
        self.future.cancel()

    def _after(self, cursor: CursorText) -> Sequence[LmPiece] | None:
        """Return the pieces after the cursor, None if the typed text differs from them."""
        if self.future.cancelled() or cursor.context.x != self.start.context.x:
            return None
        before, now = self.start.before, cursor.before
        if not now.startswith(before):
            return None
        return _without(self.pieces, now[len(before) :], is_done=self.is_done)


def _without(pieces: Sequence[LmPiece], typed: str, *, is_done: bool) -> Sequence[LmPiece] | None:
    """Return pieces without the `typed` text, none if not generated yet, None if they differ."""
    for i, piece in enumerate(pieces):
        shared = min(len(typed), len(piece.text))
        if piece.text[:shared] != typed[:shared]:
            return None
        if len(piece.text) > len(typed):
            return [LmPiece(piece.text[len(typed) :], piece.log_prob), *pieces[i + 1 :]]
        typed = typed[len(piece.text) :]
    if not typed:
        return []
    return None if is_done else []


@dataclass(frozen=True)
class Suggested:
    """Suggestions, and the generation that may add to them."""

    completions: Sequence[Completion]
    generation: LmGeneration | None = None


class InstantCompleter:
    """Completes without a language model."""

    def complete(
        self,
        engine: CompletionEngine,
        text: str,
        offset: int,
        k: int = 5,
        *,
        file: str | None = None,
        generation: LmGeneration | None = None,
    ) -> Suggested:
        """Return the suggestions of the engine, which need no generation."""
        return Suggested(engine.complete(text, offset, k, file=file), generation)

    def release(self, generation: LmGeneration) -> None:
        """Do nothing: there are no generations."""


class LmCompleter(InstantCompleter):
    """Keeps the latest generations of the language model behind `client`; thread-safe."""

    def __init__(self, client: "LmClient", settings: LmCompletionSettings | None = None) -> None:
        self.client = client
        self.settings = settings or LmCompletionSettings()
        self._model = self.settings.model
        self._next_try = 0.0
        self._lock = threading.Lock()
        self._latest: OrderedDict[str | None, LmGeneration] = OrderedDict()

    def connect(self) -> None:
        """Find the name of the model; warns if nothing answers."""
        try:
            self._model = self.client.find_model(self.settings.model)
        except LmError as error:
            self.client.warn(error)

    def complete(
        self,
        engine: CompletionEngine,
        text: str,
        offset: int,
        k: int = 5,
        *,
        file: str | None = None,
        generation: LmGeneration | None = None,
    ) -> Suggested:
        """Return the suggestions that are ready, and the generation that is under way for more.

        With a `generation`, which was waited for, no other one begins or is stopped. The language
        model completes Python only.
        """
        if language_of(file) is not PYTHON:
            return super().complete(engine, text, offset, k, file=file)
        cursor = CursorText.of(text, offset, engine.name_of(file))
        x = cursor.context.x
        if generation is None:
            generation = self._generation(
                cursor, lambda: engine.similar(x, file, PYTHON, text=text, offset=offset)
            )
        if generation is None:
            return super().complete(engine, text, offset, k, file=file)
        generated = generation.ends(cursor)
        completions = engine.complete(
            text,
            offset,
            k,
            file=file,
            mix=lambda copied: starter_mixture().rank(copied, generated, generation.shown),
        )
        return Suggested(completions, None if generation.is_done else generation)

    def release(self, generation: LmGeneration) -> None:
        """Stop a generation that nobody waits for, unless the next keystroke asks for it again."""
        uses = generation.uses

        def cancel_unused() -> None:
            if generation.uses == uses:
                generation.cancel()

        timer = threading.Timer(GRACE, cancel_unused)
        timer.daemon = True
        timer.start()

    def _generation(self, cursor: CursorText, similar: Similar) -> LmGeneration | None:
        """Return the generation that serves a cursor: the latest, or a new one that replaces it.

        None while the model is not known, and outside of bodies, where nothing is suggested.
        """
        if cursor.context.place != "body":
            return None
        if self._model is None:
            self._reconnect()
            return None
        with self._lock:
            latest = self._latest.pop(cursor.file, None)
            if latest is None or not latest.serves(cursor):
                if latest is not None:
                    latest.cancel()
                latest = self._begin(cursor, similar()[: self.settings.shots], self._model)
            latest.uses += 1
            self._latest[cursor.file] = latest
            while len(self._latest) > MAX_FILES:
                self._latest.popitem(last=False)[1].cancel()
            return latest

    def _begin(self, cursor: CursorText, shown: Sequence[Prototype], model: str) -> LmGeneration:
        prompt = cursor_prompt(
            cursor,
            [prototype.example for prototype in shown],
            tokens=self.settings.context - MAX_TOKENS,
            template=fim_template(model),
        )
        generation = LmGeneration(cursor, shown)

        def enough(pieces: Sequence[LmPiece]) -> bool:
            generation.pieces = tuple(pieces)
            return is_enough(pieces)

        generation.future = self.client.start(
            prompt, model=model, max_tokens=MAX_TOKENS, enough=enough, delay=DELAY
        )

        def finish(future: "Future[LmAnswer]") -> None:
            if not future.cancelled() and isinstance(error := future.exception(), LmError):
                generation.pieces = ()  # the text of a broken answer is not to be trusted
                self.client.warn(error)

        generation.future.add_done_callback(finish)
        return generation

    def _reconnect(self) -> None:
        """Look for the model again in the background, but not all the time."""
        with self._lock:
            if time.monotonic() < self._next_try:
                return
            self._next_try = time.monotonic() + RETRY
        threading.Thread(target=self.connect, name="language model", daemon=True).start()
