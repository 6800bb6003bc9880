"""Networks as the hub keeps them: `config.json`, its keys, and the shapes that they mean."""
