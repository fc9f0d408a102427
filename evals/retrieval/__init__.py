"""How well the product's own retrieval finds, measured on public test collections."""
