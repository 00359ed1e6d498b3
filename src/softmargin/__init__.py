"""Support vector machines trained exactly, fast, and with proof."""
