"""What the console asks of the server beside ACP: HTTP below `/api`, JSON in and out."""
