"""What a link writes beside the linked file, and how files appear atomically."""
