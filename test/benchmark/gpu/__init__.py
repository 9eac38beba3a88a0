"""What a GPU computes and how fast: checks that ``gpu_check.py`` runs, each in a process of its own."""
