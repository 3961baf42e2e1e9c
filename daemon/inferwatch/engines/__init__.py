"""What the metrics pages of serving engines mean: one schema, one table per engine, and the machinery between them."""
