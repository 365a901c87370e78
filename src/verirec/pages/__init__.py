"""What all pages need: templates, figures, and files that are written whole or not at all."""
