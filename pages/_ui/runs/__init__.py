"""Files of training runs: opened, bounded, and read into one `Run`, whoever wrote them."""
