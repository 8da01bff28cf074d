"""One environment: a Git repository of documents, its index and its working tree."""
