"""Tables of answers: what was drawn of them, and margins and sums that add up."""
