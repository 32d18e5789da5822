"""Examples and vectors in PostgreSQL with pgvector."""
