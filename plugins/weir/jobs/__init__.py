"""The file that spark-submit runs for every action, in a folder that it may put on its path."""
