"""Examples to trained parts. One loop; knows no model by name."""
