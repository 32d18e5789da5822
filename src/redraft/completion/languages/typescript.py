"""TypeScript, with and without JSX; borrows from JavaScript and the other way round."""

from dataclasses import replace

from redraft.completion.languages.javascript import JAVASCRIPT, KEYWORDS, QUERY, TYPED_FIELD
from redraft.completion.languages.trees.grammar import Grammar

_QUERY = QUERY + TYPED_FIELD

TYPESCRIPT = replace(
    JAVASCRIPT,
    name="typescript",
    suffixes=(".ts", ".mts", ".cts"),
    grammar=Grammar("tree_sitter_typescript", _QUERY, symbol="language_typescript"),
    keywords=KEYWORDS
    | {"abstract", "as", "declare", "enum", "implements", "interface", "keyof", "namespace"}
    | {"private", "protected", "public", "readonly", "type"},
)

TYPESCRIPT_REACT = replace(
    TYPESCRIPT,
    name="typescriptreact",
    suffixes=(".tsx",),
    grammar=Grammar("tree_sitter_typescript", _QUERY, symbol="language_tsx"),
)
