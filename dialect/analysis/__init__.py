"""Questions about a module that several passes ask; nothing here changes it."""
