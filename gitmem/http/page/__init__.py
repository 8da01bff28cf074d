"""The Memory page: what people see of a store in a browser."""
