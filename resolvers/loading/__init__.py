"""Fields of many records at once, and what a process remembers that no read answers.

| module       | contents                                                |
|--------------|---------------------------------------------------------|
| batched      | `@batched`: a resolver that answers for many records    |
| bounded_dict | a dictionary with a bound                               |
"""
