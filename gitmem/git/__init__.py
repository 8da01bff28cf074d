"""Git itself: objects, trees, commits, the branch main, its durability and `.git/index`.

The only package that imports pygit2.
"""
