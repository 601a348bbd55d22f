"""Input files, whatever reads them: which ones, what they are called, how they are written."""
