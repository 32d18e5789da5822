"""`redraft lsp` without a model in a folder of Go files: a real process over the protocol."""

from pathlib import Path

import pytest
from lsprotocol import types

from tests.server.lsp.editor import FULL, Editor, running

pytestmark = pytest.mark.asyncio

HANDLER = """package shop

// Get{0} answers with one {1}.
func Get{0}(w http.ResponseWriter, r *http.Request) {{
	{1}, err := store.Find{0}(r.Context())
	if err != nil {{
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}}
	writeJSON(w, {1})
}}
"""
TYPED = HANDLER.format("User", "user").split("\tif err")[0] + "\t"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name in ("Order", "Item", "Basket", "Bill"):
        (tmp_path / f"{name.lower()}.go").write_text(HANDLER.format(name, name.lower()))
    return tmp_path


def open_go(editor: Editor, path: Path) -> str:
    document = types.TextDocumentItem(path.as_uri(), "go", 1, TYPED)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    return document.uri


async def test_a_go_file_is_completed_from_the_others(shop: Path) -> None:
    async with running() as editor:
        await editor.initialize(FULL, folder=shop)
        await editor.ready()
        uri = open_go(editor, shop / "user.go")
        found = await editor.complete(uri, TYPED.count("\n"), 1)
        best = found.items[0]
        assert isinstance(best.text_edit, types.TextEdit)
        assert best.text_edit.new_text.startswith("if err != nil {")
        resolved = await editor.client.completion_item_resolve_async(best)
        assert isinstance(resolved.documentation, types.MarkupContent)
        assert "```go\n// Get" in resolved.documentation.value


@pytest.mark.parametrize("off", ["go", "user.*"])
async def test_suggestions_can_be_off_for_a_language_and_a_file(shop: Path, off: str) -> None:
    async with running() as editor:
        await editor.initialize(FULL, options={"off": [off]}, folder=shop)
        await editor.ready()
        uri = open_go(editor, shop / "user.go")
        assert not (await editor.complete(uri, TYPED.count("\n"), 1)).items


async def test_one_word_is_offered_at_a_time(shop: Path) -> None:
    async with running() as editor:
        await editor.initialize(FULL, options={"accept": "word"}, folder=shop)
        await editor.ready()
        uri = open_go(editor, shop / "user.go")
        found = await editor.complete(uri, TYPED.count("\n"), 1)
        assert isinstance(found.items[0].text_edit, types.TextEdit)
        assert found.items[0].text_edit.new_text == "if"
