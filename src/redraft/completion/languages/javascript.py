"""JavaScript, with and without JSX."""

import re

from redraft.completion.languages.trees.grammar import Grammar
from redraft.completion.languages.trees.language import TreeLanguage
from redraft.completion.languages.trees.open_brackets import (
    DOUBLE,
    REGEX,
    SINGLE,
    TEMPLATE,
    Lexis,
)

_CODE = """[
  (arrow_function parameters: (formal_parameters) @arguments body: (statement_block) @body)
  (function_expression parameters: (formal_parameters) @arguments body: (statement_block) @body)
  (generator_function parameters: (formal_parameters) @arguments body: (statement_block) @body)
]"""

QUERY = f"""
(function_declaration
  name: (identifier) @name parameters: (formal_parameters) @arguments
  body: (statement_block) @body) @function
(generator_function_declaration
  name: (identifier) @name parameters: (formal_parameters) @arguments
  body: (statement_block) @body) @function
(method_definition
  name: (_) @name parameters: (formal_parameters) @arguments
  body: (statement_block) @body) @function
(variable_declarator name: (identifier) @name value: {_CODE}) @function
(pair key: (_) @name value: {_CODE}) @function
(assignment_expression
  left: [(identifier) @name (member_expression property: (_) @name)] right: {_CODE}) @function
(function_expression
  name: (identifier) @name parameters: (formal_parameters) @arguments
  body: (statement_block) @body) @function
"""
"""Functions in the grammar of JavaScript, except those in fields of classes."""

FIELD = f"(field_definition property: (_) @name value: {_CODE}) @function"
TYPED_FIELD = f"(public_field_definition name: (_) @name value: {_CODE}) @function"

_KEYWORDS = (
    "async await break case catch class const continue debugger default delete do else "
    "export extends finally for function if import in instanceof let new null return "
    "static super switch this throw true false try typeof undefined var void while with "
    "yield"
)

LEXIS = Lexis((DOUBLE, SINGLE, TEMPLATE, REGEX))
NO_STATEMENT = tuple("=)],;%/>^")
HEADER = re.compile(r"\bfunction\b[^{]*$")
ARGUMENT = re.compile(
    r"\s*(?:@\w+\s+)*(?:(?:public|private|protected|readonly|override)\s+)*(?:\.\.\.)?"
    r"(?P<name>[^\W\d][\w$]*|\$[\w$]*)"
)
OPENING = "function {name}({arguments}) {{"
KEYWORDS = frozenset(_KEYWORDS.split())

JAVASCRIPT = TreeLanguage(
    name="javascript",
    suffixes=(".js", ".jsx", ".mjs", ".cjs"),
    family="javascript",
    grammar=Grammar("tree_sitter_javascript", QUERY + FIELD),
    lexis=LEXIS,
    keywords=KEYWORDS,
    no_statement=NO_STATEMENT,
    header=HEADER,
    argument=ARGUMENT,
    opening=OPENING,
    indent=" " * 2,
    is_script=True,
)
