"""The request as values: statistics asked for, bounds, keys, filters, declarations and pandera schemas."""
