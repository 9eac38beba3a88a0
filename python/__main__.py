"""``python -m relaxir``: the command line, where its script is not on the path."""

from importlib import import_module

if __name__ == "__main__":
    # By name: tools are above this folder, and import from it.
    import_module("relaxir.tools.cli").main()
