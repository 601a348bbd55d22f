"""A package to pytest, so that the stack that its tests share is stopped after the last of them."""
