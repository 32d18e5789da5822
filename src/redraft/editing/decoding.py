"""Settings of decoding. Knows no torch, so that they can be checked where it is not installed."""

from dataclasses import dataclass
from typing import Annotated

from redraft.config.ranges import BEAM, MAX_OUTPUT, MIXED, NEAREST, TTT_STEPS, Range, check_ranges
from redraft.editing.constraints import AUTO, named_syntax


@dataclass(frozen=True)
class DecodingConfig:
    """Settings of decoding.

    - `max_length`: maximum tokens of an output; 0 lets training set it from the longest output.
    - `prototypes`: number of groups of prototypes in the mixture of equation 1; a group is the
      prototypes that the network reads together.
    - `ttt_steps`: test-time training steps on the nearest examples before each prediction, on a
      copy of the network; completions use none.
    - `ngram_cache_neighbours`: number of nearest outputs that the n-gram cache searches.
    - `syntax`: constraint on outputs: any, python or json; auto lets training detect it.
    """

    beam_size: Annotated[int, BEAM] = 5
    length_penalty: Annotated[float, Range(0.0, 100.0)] = 1.0
    max_length: Annotated[int, Range(0, MAX_OUTPUT)] = 0
    prototypes: Annotated[int, MIXED] = 1
    ttt_steps: Annotated[int, TTT_STEPS] = 0
    ngram_cache_neighbours: Annotated[int, NEAREST] = 0
    syntax: str = "any"

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.syntax != AUTO:
            named_syntax(self.syntax)  # fail on a wrong name before training
