"""Chakra execution traces (github.com/mlcommons/chakra): protobuf by a codec of its own, and the same in JSON."""
