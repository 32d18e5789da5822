"""Go."""

import re

from redraft.completion.languages.trees.grammar import Grammar
from redraft.completion.languages.trees.language import TreeLanguage
from redraft.completion.languages.trees.open_brackets import DOUBLE, RAW, SINGLE, Lexis

_QUERY = """
(function_declaration
  name: (identifier) @name parameters: (parameter_list) @arguments body: (block) @body) @function
(method_declaration
  receiver: (parameter_list) @arguments name: (field_identifier) @name
  parameters: (parameter_list) @arguments body: (block) @body) @function
"""

_KEYWORDS = (
    "break case chan const continue default defer else fallthrough for func go goto if "
    "import interface map package range return select struct switch type var nil true "
    "false"
)

GO = TreeLanguage(
    name="go",
    suffixes=(".go",),
    family="go",
    grammar=Grammar("tree_sitter_go", _QUERY),
    lexis=Lexis((DOUBLE, SINGLE, RAW)),
    keywords=frozenset(_KEYWORDS.split()),
    no_statement=tuple("=)],.:;+%/>|^!"),
    header=re.compile(r"^func\b[^{]*$"),
    argument=re.compile(r"\s*(?P<name>[^\W\d]\w*)"),
    opening="func {name}({arguments}) {{",
    indent="\t",
)
