"""Personal data in text: one module a kind; each looks for a cheap sign of it before it looks closely."""
