"""What is kept: projects, golden sets, runs with their steps and scores, criteria, replies.

`Store` is the face; SQL, the schema and the migrations stay in this folder.
"""
