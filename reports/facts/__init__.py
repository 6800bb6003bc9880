"""What the model knows beside a result, for pages."""
