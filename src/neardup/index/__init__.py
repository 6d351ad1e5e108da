"""The durable index: the sieve over documents that a store keeps."""
