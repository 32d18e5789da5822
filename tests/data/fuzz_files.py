"""Fuzzed files of pairs: whatever is in a file, reading it ends in rows or in one line.

A few hundred cases run with the tests. Many more:

    python -m tests.data.fuzz_files --cases 20000 --seed 1

A case is named by its seed and its number; `--only N` runs one of them and keeps its file.
"""

import argparse
import csv
import gzip
import io
import json
import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from redraft.data.pairs import scan_numbered
from redraft.errors import LONGEST, RedraftError
from redraft.types import Example

ODD_TEXTS = (
    *("", " ", "a", "a\nb", "ä§🙂", "\x1b]0;t\x07", "\x9b31m", "\u202e", "\u2028", "NaN", "\0"),
    *('"', "'", ",", "\t", "\\", "\ufeff", "{", "[1", "x" * 5000, "1" * 5000),
)
ODD_JSON = (
    *("NaN", "-Infinity", "1e999", "1" * 5000, "null", "[]", "{}", '"\\ud800"', '"\\u0000"', "tru"),
    *("[" * 40 + "]" * 40, "[" * 2000, '{"a":' * 40 + "1" + "}" * 40, "-0", "1.5", '"text"'),
)
BYTES = (b"\xff", b"\0", b"\r", b"\n", b'"', b",", b"{", b"\x1b", b"\xed\xa0\x80", b"\xef\xbb\xbf")


def text_of(draw: random.Random) -> str:
    """Draw a text, often an odd one."""
    if draw.random() < 0.4:
        return draw.choice(ODD_TEXTS)
    return "".join(draw.choices("abc xyz\n", k=draw.randrange(1, 30)))


def json_lines(draw: random.Random) -> bytes:
    """Draw lines of JSON, some with values, keys or shapes that are wrong."""
    lines = []
    for _ in range(draw.randrange(1, 8)):
        x: Any = text_of(draw) if draw.random() < 0.6 else {text_of(draw): text_of(draw)}
        row = {"x": x, "y": text_of(draw), "meta": {text_of(draw): "HOLE"}}
        line = json.dumps(row, ensure_ascii=draw.random() < 0.5)
        value = draw.choice(ODD_JSON)
        line = line.replace('"HOLE"', value if draw.random() < 0.5 else '"m"')
        if draw.random() < 0.1:
            line = value
        lines.append(line)
    return "\n".join(lines).encode(errors="surrogatepass")


def table(draw: random.Random, delimiter: str = ",") -> bytes:
    """Draw a CSV or TSV file, some with odd headers or rows of another length."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=draw.choice(["\n", "\r\n"]))
    header = draw.choice([["x", "y"], ["x.a", "x.b", "y"], ["x", "y", "meta.k"], ["y", "y", "x"]])
    extra = [text_of(draw) for _ in range(draw.choice([0, 0, 0, 1, 300]))]
    writer.writerow([*header, *extra])
    for _ in range(draw.randrange(6)):
        width = len(header) + len(extra) + draw.choice([0] * 9 + [1, -1])
        writer.writerow([text_of(draw) for _ in range(max(1, width))])
    return stream.getvalue().encode(errors="surrogatepass")


def _array(draw: random.Random, count: int) -> Any:
    """Draw a column of any type that Parquet has."""

    def fill(make: Callable[[], Any], kind: Any = None) -> Any:
        return pa.array([None if draw.random() < 0.1 else make() for _ in range(count)], kind)

    def number() -> int:
        return draw.choice([0, 1, -1, 999, 2**31 - 1, draw.getrandbits(62), -draw.getrandbits(62)])

    raw = [bytes(draw.choices(range(256), k=draw.randrange(6))) for _ in range(count)]
    unit = draw.choice(["s", "ms", "us", "ns"])
    kinds: list[Callable[[], Any]] = [
        lambda: fill(lambda: text_of(draw)),
        lambda: fill(lambda: text_of(draw)).dictionary_encode(),
        lambda: fill(lambda: text_of(draw), pa.large_string()),
        lambda: pa.array(raw, pa.binary()).view(pa.string()),
        lambda: pa.array(raw, pa.binary()),
        lambda: fill(number, pa.int64()),
        lambda: fill(lambda: draw.choice([0.5, float("nan"), float("inf")])),
        lambda: fill(number, pa.timestamp(unit, draw.choice([None, "UTC", "Europe/Berlin"]))),
        lambda: fill(number, pa.duration(unit)),
        lambda: fill(lambda: number() % 2**31, pa.date32()),
        lambda: fill(lambda: number() % 86_400_000_000, pa.time64(draw.choice(["us", "ns"]))),
        lambda: fill(
            lambda: Decimal(number()), pa.decimal128(38, 4) if draw.random() < 0.5 else None
        ),
        lambda: fill(lambda: [text_of(draw)] * draw.randrange(3), pa.list_(pa.string())),
        lambda: fill(lambda: [(text_of(draw), 1)], pa.map_(pa.string(), pa.int8())),
        lambda: fill(lambda: {"a": text_of(draw), "b": [timedelta(1)]}),
        lambda: fill(lambda: draw.choice([datetime(1, 1, 1), datetime(9999, 12, 31)])),
        lambda: fill(lambda: date(1, 1, 1)),
        lambda: pa.nulls(count),
    ]
    return draw.choice(kinds)()


def arrow(draw: random.Random) -> bytes:
    """Draw a Parquet file with columns of any type."""
    count = draw.randrange(1, 30)
    names = draw.choice([["x", "y"], ["x.a", "x.b", "y"], ["x", "y", "meta.k", "meta.l"]])
    texts = pa.array([text_of(draw) or "z" for _ in range(count)])
    columns = [texts if draw.random() < 0.6 else _array(draw, count) for _ in names]
    if "meta.k" in names:
        columns[2] = _array(draw, count)
    stream = io.BytesIO()
    try:
        parquet.write_table(
            pa.table(columns, names=names),
            stream,
            row_group_size=draw.choice([3, 1000]),
            compression=draw.choice(["none", "snappy", "zstd", "gzip"]),
            use_dictionary=draw.random() < 0.5,
            data_page_version=draw.choice(["1.0", "2.0"]),
            store_schema=draw.random() < 0.7,
        )
    except (pa.ArrowException, ValueError):  # a type that this writer lacks
        parquet.write_table(pa.table([texts, texts], names=["x", "y"]), stream)
    return stream.getvalue()


def mutate(content: bytes, draw: random.Random) -> bytes:
    """Change, cut, repeat or insert a few bytes."""
    changed = bytearray(content)
    for _ in range(draw.choice([0, 0, 1, 1, 2, 5, 20])):
        at = draw.randrange(len(changed) + 1)
        kind = draw.randrange(5)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(changed):
            changed[at] = draw.randrange(256)
        elif kind == 2:
            changed[at:at] = draw.choice(BYTES)
        elif kind == 3:
            del changed[at : at + draw.randrange(1, 9)]
        else:
            changed[at:at] = changed[at : at + draw.randrange(1, 60)]
    if draw.random() < 0.05:
        del changed[draw.randrange(len(changed) + 1) :]
    return bytes(changed)


MAKERS: dict[str, Callable[[random.Random], bytes]] = {
    ".parquet": arrow,
    ".csv": table,
    ".jsonl": json_lines,
    ".tsv": lambda draw: table(draw, "\t"),
}


@dataclass(frozen=True)
class Case:
    """A file, and what reading it came to: "rows", "error" or what went wrong."""

    number: int
    ending: str
    outcome: str


def make(seed: int, number: int, endings: tuple[str, ...]) -> tuple[str, bytes]:
    """Return the ending and the content of a case."""
    draw = random.Random(f"{seed}:{number}")
    ending = endings[number % len(endings)]
    content = mutate(MAKERS[ending](draw), draw)
    if draw.random() < 0.03:
        return f"{ending}.gz", mutate(gzip.compress(content), draw)
    return ending, content


def outcome_of(path: Path) -> str:
    """Read the file and return "rows" or "error", or what is wrong with how it was refused."""
    said = []
    kind = "rows"
    try:
        for _, found in scan_numbered(path):
            if isinstance(found, Example):
                json.loads(found.to_line())
                json.dumps(found.to_json(), allow_nan=False)  # what HTTP and PostgreSQL want
            else:
                said.append(str(found))
    except RedraftError as error:
        kind = "error"
        said.append(str(error))
    except Exception:
        return "traceback: " + traceback.format_exc(limit=-3).replace("\n", " | ")
    for message in said:
        if len(message.splitlines()) != 1 or not message.isprintable() or len(message) > LONGEST:
            return f"not one printable line: {message[:300]!r}"
        if not message.startswith(str(path)):
            return f"does not name the file: {message[:300]!r}"
    return kind


def run(
    cases: int, *, seed: int, folder: Path, endings: tuple[str, ...] = tuple(MAKERS)
) -> Iterator[Case]:
    """Yield every case of a seed as it is read."""
    for number in range(cases):
        ending, content = make(seed, number, endings)
        path = folder / f"pairs{ending}"
        path.write_bytes(content)
        yield Case(number, ending, outcome_of(path))


def main() -> None:
    """Run the cases and say what they came to; leave with 1 if one was not as it should be."""
    parser = argparse.ArgumentParser(description="Fuzz the readers of files of pairs.")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this case alone and keep its file here")
    parser.add_argument("--endings", nargs="+", choices=list(MAKERS), default=list(MAKERS))
    asked = parser.parse_args()
    endings = tuple(asked.endings)
    if asked.only is not None:
        ending, content = make(asked.seed, asked.only, endings)
        path = Path(f"case-{asked.seed}-{asked.only}{ending}")
        path.write_bytes(content)
        print(path, outcome_of(path))
        return
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in run(asked.cases, seed=asked.seed, folder=Path(folder), endings=endings):
            is_fine = case.outcome in ("rows", "error")
            counts[case.ending, case.outcome if is_fine else "WRONG"] += 1
            if not is_fine:
                print(f"--seed {asked.seed} --only {case.number}: {case.outcome}")
    for (ending, outcome), count in sorted(counts.items()):
        print(f"{ending}\t{outcome}\t{count:,}")
    sys.exit(any(outcome == "WRONG" for _, outcome in counts))


if __name__ == "__main__":
    main()
