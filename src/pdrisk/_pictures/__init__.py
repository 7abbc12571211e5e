"""Pictures: canvas, colours and sizes that all of them share."""
