"""Reading the web without trusting it: which addresses may be asked, how much is taken, and what a page really says."""
