"""Bulk processing of millions of rows: numbered input shards to numbered output shards."""
