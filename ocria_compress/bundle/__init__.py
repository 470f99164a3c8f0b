"""What is handed over: the checked checkpoint, and later the whole bundle of target, draft and evidence."""
