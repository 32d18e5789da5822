"""Tiny models of mined functions: no training, predictable suggestions."""

from pathlib import Path

from redraft import RetrieveAndEdit
from redraft.completion.project import Project
from redraft.server.served_model import ServedModel


def model_of(folder: Path) -> RetrieveAndEdit:
    """Return a model that suggests lines of the functions under a folder verbatim."""
    examples = [each for found in Project.read([folder]).files.values() for each in found]
    return RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim")


def served_functions(folder: Path) -> ServedModel:
    """The same model, served."""
    return ServedModel("functions", model_of(folder))
