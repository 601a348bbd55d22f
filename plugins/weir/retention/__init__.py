"""What retention may delete, when and why (PDP-47), and what people delete or release by hand."""
