"""The command line: finds the store, calls the library, prints."""
