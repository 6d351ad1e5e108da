"""The store of an index in a PostgreSQL database, a schema for each index."""
