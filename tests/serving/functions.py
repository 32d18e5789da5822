"""Tiny models of mined functions: no training, and answers that can be told beforehand."""

from pathlib import Path

from redraft import RetrieveAndEdit
from redraft.autocomplete.project import Project
from redraft.serving.served_model import ServedModel


def model_of(folder: Path) -> RetrieveAndEdit:
    """A model that suggests what stands in the functions under a folder, word for word."""
    examples = [each for found in Project.read([folder]).files.values() for each in found]
    return RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim")


def served_functions(folder: Path) -> ServedModel:
    """The same model, served."""
    return ServedModel("functions", model_of(folder))
