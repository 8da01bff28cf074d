"""What doctor looks at: each module holds the checks of one part of an environment."""
