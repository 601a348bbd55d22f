"""The demo: the flights that left New York in 2013, through streams (`python -m flights.demo`).

`delays` is what a user of Weir writes; the other modules tell the story around it and check it.
"""
