"""What if: which of several changes of a traced program shorten it most, for what they cost?"""
