"""Who may do and see what: a rule for every field of the schema, checked for every kind of viewer."""
