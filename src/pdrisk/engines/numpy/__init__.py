"""numpy engine: summaries of frames in memory."""
