"""What retention may truncate, when and why (PDP-47); what people truncate, release or delete."""
