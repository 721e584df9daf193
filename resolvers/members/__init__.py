"""What is done with a member, and the keys of machines.

| module      | contents                                                       |
|-------------|----------------------------------------------------------------|
| suspensions | who may not write, known to every process                      |
| visibility  | what a viewer sees of suspensions                              |
| api_keys    | keys for machines                                              |
| member_data | erasing jobs, exported files and receipts with a member        |
"""
