"""What Weir costs, beside what it is compared with, in one run. `make bench`."""
