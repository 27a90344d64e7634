# due dates are tested by hand
