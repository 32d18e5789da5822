"""Rows by the million: numbered input shards → work on their rows → numbered output shards."""
