"""Models: what thinks. All behind one protocol, `contract.Model`."""
