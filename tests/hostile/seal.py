"""A manifest that fits altered files, as an attacker would ship it."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from redraft.storage.manifest import MANIFEST


def seal(folder: Path) -> None:
    """Write the size and the hash of every file that the manifest names into it."""
    path = folder / MANIFEST
    manifest = json.loads(path.read_text())
    for entry in manifest["files"].values():
        content = (folder / entry["stored"]).read_bytes()
        entry["bytes"], entry["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    path.write_text(json.dumps(manifest))


def stored(folder: Path) -> dict[str, Path]:
    """Return where each file of a model is, by its name in the manifest."""
    manifest = json.loads((folder / MANIFEST).read_text())
    return {name: folder / entry["stored"] for name, entry in manifest["files"].items()}


def alter_json(folder: Path, name: str, change: Callable[[Any], None]) -> Path:
    """Change the value of a JSON file in place, seal the model and return the file."""
    path = stored(folder)[name]
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
    seal(folder)
    return path


def alter_arrays(
    folder: Path, name: str, change: Callable[[dict[str, NDArray[Any]]], None]
) -> Path:
    """Change the arrays of a .safetensors or .npy file, seal the model and return the file.

    The one array of a .npy file goes by the name "array".
    """
    path = stored(folder)[name]
    if path.suffix == ".npy":
        arrays = {"array": np.load(path)}
    else:
        arrays = {key: value.copy() for key, value in load_file(path).items()}
    change(arrays)
    if path.suffix == ".npy":
        np.save(path, arrays["array"])
    else:
        save_file({key: np.ascontiguousarray(each) for key, each in arrays.items()}, path)
    seal(folder)
    return path
