"""An input to prototypes. Knows examples and distances; knows no editor."""
