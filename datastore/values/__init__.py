"""Values that any room computes with: ids, signed values, permutations, and the forms of Unicode.

| module      | contents                                                                                |
|-------------|-----------------------------------------------------------------------------------------|
| folding     | the forms of Unicode in which texts are compared; letters that look like a to z         |
| ids         | ULIDs, in the order of their times                                                      |
| permutation | numbers in an order that looks random                                                   |
| seal        | signed values and keyed hashes                                                          |
"""
