"""Devices: where values are, and copies between places."""
