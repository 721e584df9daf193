"""What is done with a member, and the keys of machines.

| module      | contents                                                                         |
|-------------|----------------------------------------------------------------------------------|
| suspensions | who may not write, known to every process; exported files and jobs with a member |
| visibility  | what a viewer sees of suspensions and API keys                                   |
| api_keys    | keys for machines                                                                |
"""
