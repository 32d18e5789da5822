"""A model whose network takes part beside the chooser, whether it helps or not."""

import math
from collections.abc import Sequence

from redraft.editing.choosing import ChoosingEditor
from redraft.editing.neural import NeuralEditor
from redraft.editing.sketch_editor import SketchEditor
from redraft.model import RetrieveAndEdit
from redraft.training.fit import FitOptions, Split
from redraft.training.fit_choosing import Judge, _combined
from redraft.training.fit_neural import train_neural, train_sketches
from redraft.types import Example


def combined_model(
    examples: Sequence[Example], dev: Sequence[Example], options: FitOptions, *, sketches: bool
) -> RetrieveAndEdit:
    """Fit the default editor and a network, over sketches or over the pairs themselves."""
    train = [example for example in examples if example not in dev]
    model = RetrieveAndEdit.fit(train, options=options)
    editor = model.editor
    assert isinstance(editor, ChoosingEditor)
    neural: NeuralEditor | SketchEditor
    if sketches:
        neural = train_sketches(Split(train, dev), editor.templates.table, options)
    else:
        neural = train_neural(Split(train, dev), model.retriever, options)
    chooser = _combined(neural, Judge(dev, model.retriever, editor), deadline=math.inf)
    assert chooser is not None
    return RetrieveAndEdit(model.retriever, editor.with_neural(neural, chooser))
