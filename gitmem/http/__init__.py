"""The management API over HTTP: a face, with no rules of its own about documents."""
