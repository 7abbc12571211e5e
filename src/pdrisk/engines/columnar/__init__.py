"""Engine of Polars and Arrow frames: the columns that a query reads become a pandas frame, once it is paid."""
