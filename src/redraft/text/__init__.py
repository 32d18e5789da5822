"""Text to token ids and batches, as networks read them. Knows no network."""
