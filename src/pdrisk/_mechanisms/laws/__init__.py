"""Laws of noise: of one number, of sums of them, and of quotients."""
