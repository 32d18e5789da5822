"""Read, check and split files of examples. Knows no model."""
