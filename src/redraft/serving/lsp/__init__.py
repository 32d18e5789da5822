"""The language server: completion in an editor, from the functions of the project it has open."""
