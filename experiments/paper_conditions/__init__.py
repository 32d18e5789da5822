"""The paper's claims under the paper's conditions: its copying, and a corpus with near-copies."""
