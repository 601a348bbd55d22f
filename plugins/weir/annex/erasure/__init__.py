"""Erases events from the files of a stream: offsets keep holes, and all else stays what it is."""
