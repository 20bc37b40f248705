"""`pylink reproduce`: repeats a recorded link."""
