"""Tables for papers and spreadsheets."""
