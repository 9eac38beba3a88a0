"""What code for every kind of GPU has in common."""
