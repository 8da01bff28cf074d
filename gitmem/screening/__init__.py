"""Looking at a text before it is kept: does it hold a secret, or instructions aimed at a later session?"""
