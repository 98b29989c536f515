"""A soak: shots for hours, while hosts are killed, the store throttles and splits, and Spark audits and cleans up."""
