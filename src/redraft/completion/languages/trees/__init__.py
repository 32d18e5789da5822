"""Languages with a tree-sitter grammar: functions are found by a query, in code that may be cut."""
