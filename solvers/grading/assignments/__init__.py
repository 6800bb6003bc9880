"""What each assignment of the course asks, and how answers are judged."""
