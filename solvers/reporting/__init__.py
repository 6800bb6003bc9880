"""What a report needs beside a result: the question in words, and what the model knows of the design, as plain data."""
