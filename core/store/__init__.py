"""What is kept: projects, golden sets, runs with their steps and scores, criteria, replies.

`Store` is the face; SQL and the schema stay in this folder.
"""
