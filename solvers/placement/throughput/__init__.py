"""The busiest device is least busy."""
