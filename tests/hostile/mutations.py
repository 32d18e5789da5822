"""Random changes of a model's files: of bytes, of JSON values and of arrays."""

import io
import json
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

_VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, "", "x", "\x00", "\x1b]0;x\x07", "line\nline", "\ud800"),
    *(0, 1, -1, 2, 7, 100, 2**16, 2**31 - 1, 2**31, 2**32, 2**63, 10**9, 10**30, 10**400, -(10**9)),
    *(0.0, 0.5, -0.5, 1e-300, 1e30, 1e308, float("nan"), float("inf"), float("-inf"), [[]], [1]),
    *({"a": 1}, ["text", "text"], ["a", "b", "c"], "lstm", "decoder-only", "positional", "none"),
)
_TOML = (
    *('"x"', "1", "-1", "9" * 5_000, "[]", "{}", "true", "nan", "a.b", "", "[" * 3_000, "1e400"),
    *('"lexical"', '"bm25"', '"task"', '"neural"', '"none"', '"hybrid"', '"verbatim"', '"\\n"'),
)
_NUMBERS = (0, 1, -1, 5, 127, 255, 2**15, 2**20, 2**30, 2**31 - 1, -(2**28), -(2**31))
_REALS = (0.0, -1.0, 1.5, 1e4, 9.9e3, 1e20, 3e38, 1e-30, np.nan, np.inf, -np.inf)
_DTYPES = ("<f4", "<f8", "<i4", "<i8", "<u1", "<u4", "<u8", "<f2", "|b1", ">f4", ">i4", "<c8")


def mutate(name: str, content: bytes, rng: random.Random) -> bytes:
    """Return the content of a file of this name, altered in one to three ways."""
    ways = [_bytes]
    if name.endswith((".json", ".jsonl", ".txt")):
        ways += [_lines] * 3
    if name.endswith(".toml"):
        ways += [_words] * 3
    if name.endswith(".npy"):
        ways += [_npy] * 4
    if name.endswith(".safetensors"):
        ways += [_safetensors] * 4
    altered = content
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            altered = rng.choice(ways)(altered, rng)
        except Exception:  # what was altered before can be read no more
            altered = _bytes(altered, rng)
    return altered if altered != content else _bytes(content, rng)


def _bytes(content: bytes, rng: random.Random) -> bytes:
    held, at = bytearray(content), rng.randrange(len(content) + 1)
    # headers are worth more tries than what follows them
    at = at if rng.random() < 0.5 else min(at, rng.randrange(200))
    way = rng.randrange(6)
    if way == 0 and held:
        for _ in range(rng.randint(1, 8)):
            held[rng.randrange(len(held))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del held[at:]
    elif way == 2:
        held[at:at] = rng.randbytes(rng.choice((1, 2, 8, 64, 5_000)))
    elif way == 3:
        del held[at : at + rng.choice((1, 2, 8, 64))]
    elif way == 4:
        held[at : at + 8] = rng.choice((b"\xff" * 8, b"\x00" * 8, b"[" * 3_000, b"PK\x03\x04"))
    else:
        held += held[:at]
    return bytes(held)


def _lines(content: bytes, rng: random.Random) -> bytes:
    """Alter a JSON value: that of the whole file or, where it has many, of one line."""
    try:
        return _dumped(_changed(json.loads(content), rng))
    except ValueError:
        lines = content.decode().split("\n")
    at = rng.randrange(len(lines))
    text, tab, count = lines[at].partition("\t")
    way = rng.randrange(5)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif way == 2 and tab:
        lines[at] = text + tab + str(rng.choice(_VALUES))
    elif way == 3:
        lines[at] = "[" * rng.choice((10, 100_000)) + lines[at]
    else:
        lines[at] = _dumped(_changed(json.loads(text), rng)).decode() + tab + count
    return "\n".join(lines).encode(errors="surrogatepass")


def _dumped(value: Any) -> bytes:
    return json.dumps(value).replace("10" + "0" * 399, "1" + "0" * 5_000).encode()


def _changed(value: Any, rng: random.Random) -> Any:
    """Return the value with one of the values in it altered."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(list(value))
        way = rng.randrange(12)
        if way == 0:
            return {key: each for key, each in value.items() if key != name}
        if way == 1:
            return {**value, f"{name}x": value[name]}
        return {**value, name: _changed(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return [*value[:at], *value[at + 1 :]]
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    if type(value) in (int, float) and rng.random() < 0.4:
        return rng.choice((value + 1, value - 1, 2 * value, -value, value // 2))
    if rng.random() < 0.02:
        nested: Any = 1
        for _ in range(900):
            nested = [nested]
        return nested
    return rng.choice(_VALUES)


def _words(content: bytes, rng: random.Random) -> bytes:
    text = content.decode()
    found = list(re.finditer(r'"[^"]*"|\d+|\w+|\[|\]|=', text))
    word = rng.choice(found)
    other = rng.choice(_TOML)
    return (text[: word.start()] + other + text[word.end() :]).encode()


def _npy(content: bytes, rng: random.Random) -> bytes:
    array = np.load(io.BytesIO(content), allow_pickle=False)
    stream = io.BytesIO()
    np.save(stream, _altered(array, rng))
    held = stream.getvalue()
    if rng.random() < 0.2:  # a header that tells another shape than the data has
        shape = rng.choice(("(99999999999, 4)", "(-1,)", "()", "(0,)", "(4611686018427387904, 4)"))
        held = re.sub(rb"'shape': \([^)]*\)", b"'shape': " + shape.encode(), held, count=1)
    return held


def _safetensors(content: bytes, rng: random.Random) -> bytes:
    arrays: dict[str, NDArray[Any]] = dict(load(content))
    name = rng.choice(sorted(arrays))
    way = rng.randrange(10)
    if way == 0:
        arrays[f"{name}x"] = arrays.pop(name)
    elif way == 1:
        del arrays[name]
    elif way == 2:
        arrays["more"] = arrays[name].copy()
    else:
        arrays[name] = _altered(arrays[name], rng)
    return save({key: np.ascontiguousarray(each) for key, each in arrays.items()})


def _altered(array: NDArray[Any], rng: random.Random) -> NDArray[Any]:
    """Return an array with some values altered, or another type, shape or order."""
    ways: tuple[Callable[[], NDArray[Any]], ...] = (
        lambda: array.astype(rng.choice(_DTYPES)),
        lambda: array[: rng.randrange(len(array) + 1)],
        lambda: np.concatenate([array, array[: rng.choice((1, 5))]]),
        lambda: array.reshape(-1),
        lambda: array.reshape(*array.shape, 1),
        lambda: array[::-1],
        lambda: np.asfortranarray(array),
        lambda: array[:0],
        lambda: np.zeros_like(array),
        lambda: array.T,
    )
    if rng.random() < 0.3 and array.ndim:
        with np.errstate(all="ignore"):
            return rng.choice(ways)()
    held = np.array(array)
    flat = held.reshape(-1)
    if not len(flat):
        return np.zeros((3, *held.shape[1:]), held.dtype)
    if rng.random() < 0.4:  # values that are in range, in places where they do not belong
        order = np.random.default_rng(rng.randrange(2**32))
        factor = rng.choice((1, 1, -1, 100)) if held.dtype.kind == "f" else 1
        flat[:] = order.choice(flat, len(flat)) * np.array(factor, held.dtype)
        return held
    start = rng.choice((0, rng.randrange(len(flat)), len(flat) - 1))
    count = rng.choice((1, 1, 50, len(flat)))
    with np.errstate(all="ignore"):
        if held.dtype.kind == "f":
            flat[start : start + count] = rng.choice(_REALS)
        elif held.dtype.kind in "iu":
            value = rng.choice((*_NUMBERS, len(flat), len(flat) + 40, int(flat.max()) + 1))
            flat[start : start + count] = np.array(value).astype(held.dtype)
        else:
            flat[start : start + count] = ~flat[start : start + count]
    return held
