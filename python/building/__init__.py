"""Building modules op by op in Python."""
