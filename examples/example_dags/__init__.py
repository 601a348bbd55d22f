"""DAGs that show how to use Weir in one's own: `make up EXAMPLES=1` has them."""
