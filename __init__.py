"""Which chip, memory, parallel plan and placement train this model best, how far is anything else from it, and how do you know?"""
