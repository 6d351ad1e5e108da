"""The store of an index in Redis or Valkey, under one prefix of keys for each index."""
