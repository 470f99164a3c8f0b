"""The independent checker: proves a quantized checkpoint against its source, with its own reader and table of names.

Nothing here uses the code that writes checkpoints. Two views of the format that were written apart must agree; a fault
in either shows as a failed check.
"""
