"""Parameters computed from others: adapters such as LoRA, norms of weights."""
