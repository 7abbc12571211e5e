"""Views for curators: what nobody else may see."""
