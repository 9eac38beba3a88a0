"""A module as something to look at: one HTML page, Graphviz text, a picture or JSON (``relaxir view``)."""
