"""From text to typed sections: documents with positions, units, ranges, schemas, settings and author's graphs."""
