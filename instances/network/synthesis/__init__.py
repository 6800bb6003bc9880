"""Small networks of single links: over which of them does each chunk of a collective go, and when?"""
