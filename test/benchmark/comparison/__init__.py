"""The parts of ``test/benchmark/suite.py``: cases, peers in processes of their own, the machine's limits, tables and charts."""
