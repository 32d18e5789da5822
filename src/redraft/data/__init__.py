"""Text to examples. Knows files and tokens; knows no model."""
