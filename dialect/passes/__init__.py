"""What a pass is, its options, the registry of passes, and the pipelines that run them."""
