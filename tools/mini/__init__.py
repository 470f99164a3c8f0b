"""How `mini` and the bundled pages are made."""
