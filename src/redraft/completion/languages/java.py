"""Java."""

import re

from redraft.completion.languages.trees.grammar import Grammar
from redraft.completion.languages.trees.language import TreeLanguage
from redraft.completion.languages.trees.open_brackets import DOUBLE, SINGLE, TEXT_BLOCK, Lexis

_QUERY = """
(method_declaration
  name: (identifier) @name parameters: (formal_parameters) @arguments body: (block) @body) @function
(constructor_declaration
  name: (identifier) @name parameters: (formal_parameters) @arguments
  body: (constructor_body) @body) @function
"""

_KEYWORDS = (
    "abstract assert boolean break byte case catch char class continue default do double "
    "else enum extends final finally float for if implements import instanceof int "
    "interface long new null package private protected public return short static super "
    "switch synchronized this throw throws transient true false try var void volatile "
    "while yield"
)

JAVA = TreeLanguage(
    name="java",
    suffixes=(".java",),
    family="java",
    grammar=Grammar("tree_sitter_java", _QUERY),
    lexis=Lexis((TEXT_BLOCK, DOUBLE, SINGLE)),
    keywords=frozenset(_KEYWORDS.split()),
    no_statement=tuple("=)],;%/*>^"),
    header=re.compile(r"(?!)"),  # declarations stand outside of functions
    argument=re.compile(r".*?(?P<name>[^\W\d]\w*)\s*$", re.DOTALL),
    opening="{name}({arguments}) {{",
)
