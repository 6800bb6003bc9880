"""What ran when: graphs of the operations of a trace, and when each of them ends if it is run again in the order of the trace."""
