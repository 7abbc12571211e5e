"""Keys of groups: listed, observed and private."""
