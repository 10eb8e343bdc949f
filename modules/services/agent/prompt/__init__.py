"""What a model is told before anything else: files by priority, within a budget, in an order that caches well."""
