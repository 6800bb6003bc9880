"""From text to typed sections: documents with positions, units, ranges, schemas, settings and graphs of other tools."""
