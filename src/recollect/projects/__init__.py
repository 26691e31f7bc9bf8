"""Which project a folder is, and whether an agent there may be told of it.

`repository` reads what lies in a folder, `folders` compares that with what is recorded, `paths` says how the name of a
folder is stored.
"""
