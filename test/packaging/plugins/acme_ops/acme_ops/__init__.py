"""Ops of Acme: ``ops`` defines them, ``reference`` says what they mean, ``lowering`` how they become linalg."""
