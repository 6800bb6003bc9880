"""Chakra execution traces (github.com/mlcommons/chakra): in protobuf and in JSON."""
