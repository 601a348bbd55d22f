"""Pages that show an installation in a browser, and the JSON that they are made of.

A FastAPI app that only reads. Whoever serves it says who may look (docs/pages.md).
"""
