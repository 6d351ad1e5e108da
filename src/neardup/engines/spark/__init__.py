"""The engine on Apache Spark: the same stages in workers of a cluster, the same result."""
