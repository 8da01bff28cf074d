"""Fuzzing of everything that reads bytes from outside: properties, and the harness for atheris."""
