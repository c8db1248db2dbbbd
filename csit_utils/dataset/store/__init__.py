"""A dataset on disk: Parquet files, imports, and queries."""
