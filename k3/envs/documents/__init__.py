"""Documents that are searched, read and cited, and the questions they answer."""
