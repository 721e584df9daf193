"""What is done with a member, and the keys of machines.

| module      | contents                                                                         |
|-------------|----------------------------------------------------------------------------------|
| suspensions | who may not write, known to every process; exported files and jobs with a member |
| api_keys    | keys for machines                                                                |
"""
