"""`pylink reproduce`: a recorded link, linked again."""
